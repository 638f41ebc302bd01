// escapes is a command of the scenario of escapes. For each kind in CHAOS_BEHAVIOR, separated by
// commas, it starts processes that try to outlive it. Like itself, each of them appends lines to
// CHAOS_LOG until it is killed, in the format of log.go, with its kind as the role:
//
//   daemon   two forks and a new session
//   thread   in its own session; its main thread has exited, and another works
//   deaf     ignores all signals that can be ignored
//   bomb     63 in sessions of their own, which replace each other
//   hop      starts the next one, in a new session, and ends: each works for some milliseconds
//   group    moves to a process group of its own and back, again and again
//   exec     vfork, then the same program again and again
//   hidden   not dumpable: a user can't see it where /proc hides processes
//   sibling  a child of the command's parent
//
// None lives for longer than two minutes, whatever its guard does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000, BEAT = 10 * MS, SELDOM = 100 * MS, LIFE = 120 };

static int logfile;
static const char *role = "command";
static char guard[16]; // the number of the guard, which all pass on
static long long born; // when the command began
static char program[4096];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// slot is a variable with a time of the slot, in milliseconds.
static long long slot(const char *name) {
  const char *text = getenv(name);
  struct tm t = {0};
  int ms = 0;
  if (text == NULL || sscanf(text, "%d-%d-%dT%d:%d:%d.%3d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec, &ms) < 6) {
    fprintf(stderr, "escapes: no time in %s\n", name);
    exit(1);
  }
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  return timegm(&t) * 1000LL + ms;
}

static void say(const char *event) {
  char text[256], whole[129];
  long long at = now();
  if (at - born > LIFE * 1000000000LL) _exit(1);
  snprintf(text, sizeof text, "%s %lld %d %s %s %lld %lld %s %s %s", event, at, getpid(), guard, getenv("LEASE_TOKEN"),
           slot("LEASE_SLOT_START"), slot("LEASE_SLOT_END"), getenv("LEASE_INSTANCE_ID"), getenv("LEASE_WORKER_TYPE"), role);
  snprintf(whole, sizeof whole, "%-127.127s\n", text);
  if (write(logfile, whole, 128) != 128) _exit(1);
}

static void beat(int pause) {
  for (;; usleep(pause)) say("beat");
}

static void work(int pause) {
  say("begin");
  beat(pause);
}

// try starts a child that has a role, and returns true in the child.
static int try(const char *as) {
  if (fork() != 0) return 0;
  role = as;
  return 1;
}

static void daemon_(void) {
  if (!try("daemon")) return;
  setsid();
  if (fork() != 0) _exit(0);
  setsid();
  if (chdir("/") != 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) close(fd);
  work(BEAT);
}

static void *other(void *none) {
  work(BEAT);
  return none;
}

static void thread(void) {
  pthread_t t;
  if (!try("thread")) return;
  setsid();
  if (pthread_create(&t, NULL, other, NULL) != 0) _exit(1);
  syscall(SYS_exit, 0);
}

static void deaf(void) {
  if (!try("deaf")) return;
  for (int s = 1; s < NSIG; s++) signal(s, SIG_IGN);
  work(BEAT);
}

// member has two members below it, and starts each anew that ends.
static void member(int levels) {
  pid_t below[2] = {0, 0};
  signal(SIGCHLD, SIG_DFL);
  setsid();
  for (say("begin");; usleep(SELDOM), say("beat")) {
    for (int i = 0; i < 2 && levels > 0; i++) {
      if (below[i] != 0 && waitpid(below[i], NULL, WNOHANG) == 0) continue;
      if ((below[i] = fork()) == 0) member(levels - 1);
    }
  }
}

static void bomb(void) {
  if (try("bomb")) member(5);
}

static void hop(void) {
  if (!try("hop")) return;
  for (say("begin");; say("begin")) {
    usleep(4 * MS);
    if (fork() != 0) _exit(0);
    setsid();
  }
}

static void group(void) {
  pid_t before = getpgrp();
  if (!try("group")) return;
  for (say("begin");; usleep(BEAT), say("beat")) {
    if (setpgid(0, getpgrp() == before ? 0 : before) != 0 && errno != EPERM) _exit(1);
  }
}

// again executes this program once more, in a role.
static void again(const char *as, const char *next) {
  char *const args[] = {program, "again", (char *)as, (char *)next, NULL};
  execv(program, args);
  _exit(1);
}

static void exec(void) {
  if (!try("exec")) return;
  if (vfork() == 0) again("exec", "first");
  work(BEAT);
}

static void hidden(void) {
  if (!try("hidden")) return;
  prctl(PR_SET_DUMPABLE, 0);
  setsid();
  if (fork() != 0) _exit(0);
  work(BEAT);
}

static void sibling(void) {
  if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) != 0) return;
  role = "sibling";
  work(BEAT);
}

static const struct {
  const char *name;
  void (*start)(void);
} kinds[] = {
    {"daemon", daemon_}, {"thread", thread}, {"deaf", deaf},     {"bomb", bomb},       {"hop", hop},
    {"group", group},    {"exec", exec},     {"hidden", hidden}, {"sibling", sibling},
};

int main(int argc, char **argv) {
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  const char *path = getenv("CHAOS_LOG"), *wanted = getenv("CHAOS_BEHAVIOR"), *began = getenv("CHAOS_BEGAN");
  logfile = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND);
  if (logfile < 0 || n <= 0 || wanted == NULL || getenv("LEASE_TOKEN") == NULL || getenv("LEASE_INSTANCE_ID") == NULL || getenv("LEASE_WORKER_TYPE") == NULL) {
    fprintf(stderr, "escapes: must be run by chaos and leasectl, with a log that it may write to: %s\n", path);
    return 1;
  }
  signal(SIGCHLD, SIG_IGN); // no process is left to be reaped
  if (argc > 3 && !strcmp(argv[1], "again") && began != NULL) {
    role = argv[2];
    born = atoll(began);
    snprintf(guard, sizeof guard, "%s", getenv("CHAOS_GUARD"));
    say(strcmp(argv[3], "first") == 0 ? "begin" : "beat");
    usleep(3 * BEAT);
    again(role, "next");
  }
  char text[32];
  born = now();
  snprintf(text, sizeof text, "%lld", born);
  snprintf(guard, sizeof guard, "%d", getppid());
  setenv("CHAOS_BEGAN", text, 1);
  setenv("CHAOS_GUARD", guard, 1);
  say("begin");
  char *list = strdup(wanted);
  for (char *kind = strtok(list, ","); kind != NULL; kind = strtok(NULL, ",")) {
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, kind) != 0) i++;
    if (i == sizeof kinds / sizeof *kinds) {
      fprintf(stderr, "escapes: no kind %s\n", kind);
      return 1;
    }
    kinds[i].start();
  }
  beat(BEAT);
}
