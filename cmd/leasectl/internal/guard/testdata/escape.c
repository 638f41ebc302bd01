// escape LOCK KIND… starts a process of each kind, and sleeps. Each holds a shared lock on
// the file, and so does whatever they start, until it has run its last instruction. Each adds
// a line to the file: its number and its kind.
//
//   thread   in its own session; its main thread has exited, and another works
//   hidden   a daemon, its child and its grandchild, none of which is dumpable
//   sibling  a child of this process's parent
//   root     this program, set-user-ID root, as root
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
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

static void thread(void) {
  pthread_t other;
  if (fork() != 0) return;
  setsid(); // out of reach of a signal to the group
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

int main(int argc, char **argv) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  lock = open(argv[1], O_RDWR | O_APPEND);
  if (lock < 0 || flock(lock, LOCK_SH) != 0) {
    perror(argv[1]);
    return 1;
  }
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "thread")) thread();
    if (!strcmp(argv[i], "hidden")) hidden();
    if (!strcmp(argv[i], "sibling")) sibling();
    if (!strcmp(argv[i], "root")) as_root();
  }
  if (setresuid(getuid(), getuid(), getuid()) != 0) return 1; // so that it can be killed itself
  sleep_on();
}
