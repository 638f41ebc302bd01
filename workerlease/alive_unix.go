//go:build unix

package workerlease

import (
	"errors"
	"syscall"
)

// isAlive reports that a process of this machine lives, as far as can be seen from here: containers don't see
// one another's.
func isAlive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
