package peer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitStop waits until all threads of a child have stopped. It leaves the
// child's state to be waited for by its os.Process.
func awaitStop(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}
