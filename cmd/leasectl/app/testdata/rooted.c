// rooted [restart] FILE is to be set-user-ID root: whoever starts it can't kill it. It adds a line
// to the file, and sleeps. With restart, it has a child of the user that started it, and
// starts another when that is gone.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int file = open(argv[argc - 1], O_WRONLY | O_APPEND);
  uid_t user = getuid();
  if (setresuid(0, 0, 0) != 0 || setsid() < 0) return 1;
  signal(SIGCHLD, SIG_IGN);
  dprintf(file, "%d\n", getpid());
  for (pid_t child = 0; argc > 2; usleep(300000)) {
    if (child != 0 && kill(child, 0) == 0) continue;
    if ((child = fork()) != 0) continue;
    if (setresuid(user, user, user) != 0) return 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    break;
  }
  for (;;) pause();
}
