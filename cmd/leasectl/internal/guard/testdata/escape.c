// escape LOCK KIND… starts a process of each kind, and sleeps. Each holds a shared lock on
// the file, and so does whatever they start, until it has run its last instruction. Each adds
// a line to the file: its number and its kind.
// escape trace PID… debugs all threads of processes, and does nothing for ever.
//
//   thread   in its own session; its main thread has exited, and another works
//   threads  the same with three that work
//   hidden   a daemon, its child and its grandchild, none of which is dumpable
//   sibling  a child of this process's parent
//   root     this program, set-user-ID root, as root
//   restart  the same, with a child of the user that starts it; starts another when that is gone
//   relay    the same, and another process goes on as the parent every 300 ms
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int lock;

static void sleep_on(void) {
  for (;;) pause();
}

static void *ready(void *kind) {
  dprintf(lock, "%d %s\n", getpid(), (char *)kind);
  sleep_on();
  return NULL;
}

static void *idle(void *none) {
  sleep_on();
  return none;
}

static void thread(int more) {
  pthread_t other;
  if (fork() != 0) return;
  setsid(); // out of reach of a signal to the group
  for (; more > 0; more--) {
    if (pthread_create(&other, NULL, idle, NULL) != 0) exit(1);
  }
  if (pthread_create(&other, NULL, ready, "thread") != 0) exit(1);
  syscall(SYS_exit, 0);
}

static void hidden(void) {
  if (fork() != 0) return;
  prctl(PR_SET_DUMPABLE, 0);
  setsid();
  if (fork() != 0) exit(0);
  if (fork() == 0) fork();
  ready("hidden");
}

static void sibling(void) {
  if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) ready("sibling");
}

static void as_root(void) {
  if (fork() != 0) return;
  if (setresuid(0, 0, 0) != 0) exit(1);
  setsid();
  ready("root");
}

// child_of starts a process that can be killed.
static pid_t child_of(uid_t user) {
  pid_t child = fork();
  if (child != 0) return child;
  if (setresuid(user, user, user) != 0) exit(1);
  prctl(PR_SET_DUMPABLE, 1); // so that /proc shows it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sleep_on();
  return 0;
}

// restart goes on for as long as the file has a name.
static void restart(int relay) {
  uid_t user = getuid();
  struct stat s;
  if (fork() != 0) return;
  if (setresuid(0, 0, 0) != 0) exit(1);
  setsid();
  dprintf(lock, "%d %s\n", getpid(), relay ? "relay" : "restart");
  for (pid_t child = 0; fstat(lock, &s) == 0 && s.st_nlink > 0; usleep(300000)) {
    if (relay && fork() != 0) exit(0);
    if (relay || child == 0 || kill(child, 0) != 0) child = child_of(user);
  }
  exit(0);
}

// trace debugs every thread that hasn't exited.
static int trace(int processes, char **pids) {
  for (int i = 0; i < processes; i++) {
    char name[64];
    int threads = 0;
    snprintf(name, sizeof name, "/proc/%s/task", pids[i]);
    DIR *dir = opendir(name);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
      if (d->d_name[0] != '.' && ptrace(PTRACE_SEIZE, atoi(d->d_name), 0, 0) == 0) threads++;
    }
    if (threads == 0) {
      perror(pids[i]);
      return 1;
    }
  }
  puts("traces");
  fflush(stdout);
  sleep_on();
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "trace")) return trace(argc - 2, argv + 2);
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  lock = open(argv[1], O_RDWR | O_APPEND);
  if (lock < 0 || flock(lock, LOCK_SH) != 0) {
    perror(argv[1]);
    return 1;
  }
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "thread")) thread(0);
    if (!strcmp(argv[i], "threads")) thread(2);
    if (!strcmp(argv[i], "hidden")) hidden();
    if (!strcmp(argv[i], "sibling")) sibling();
    if (!strcmp(argv[i], "root")) as_root();
    if (!strcmp(argv[i], "restart")) restart(0);
    if (!strcmp(argv[i], "relay")) restart(1);
  }
  if (setresuid(getuid(), getuid(), getuid()) != 0) return 1; // so that it can be killed itself
  sleep_on();
}
