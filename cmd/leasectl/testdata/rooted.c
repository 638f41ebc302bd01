// rooted is to be set-user-ID root: whoever starts it can't kill it. It adds a line to the file
// that it is given, and sleeps.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int file = open(argv[argc - 1], O_WRONLY | O_APPEND);
  if (setresuid(0, 0, 0) != 0 || setsid() < 0) return 1;
  dprintf(file, "%d\n", getpid());
  for (;;) pause();
}
