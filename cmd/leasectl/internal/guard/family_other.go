//go:build unix && !aix && !linux

package guard

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// prepare has nothing to do: there are no subreapers here.
func prepare() error { return nil }

// BecomeSubreaper returns [ErrUnsupported]: only Linux has subreapers, and the
// guarantee is weaker without them.
func BecomeSubreaper() error { return fmt.Errorf("become subreaper: %w", ErrUnsupported) }

// commandAttr puts the command in a group of its own.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// exited reports whether the command has ended.
func (f *family) exited() bool {
	if !f.reaped {
		pid, err := syscall.Wait4(f.main, &f.status, syscall.WNOHANG, nil)
		f.reaped = err == nil && pid == f.main
	}
	return f.reaped
}

// reap has nothing to do: orphans are init's.
func (f *family) reap() {}

// groupAlive reports whether the process group has members.
func (f *family) groupAlive() bool { return syscall.Kill(-f.main, 0) == nil }

// killAll kills the process group and waits for the command.
func (f *family) killAll() []int {
	if f.main == 0 {
		return nil
	}
	_ = syscall.Kill(-f.main, syscall.SIGKILL)
	for !f.reaped {
		pid, err := syscall.Wait4(f.main, &f.status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			break
		}
		f.reaped = pid == f.main
	}
	return nil
}

// awaitDeath, backUp and rescue are what the program does for a guard that was
// killed or stopped: kill the command's process group.

func awaitDeath(int) {}

func backUp(_, command int) (alive int) {
	if command != 0 && syscall.Kill(-command, syscall.SIGKILL) == nil {
		return 1
	}
	return 0
}

func rescue(_, command int) []int {
	for backUp(0, command) != 0 {
		time.Sleep(time.Millisecond)
	}
	return nil
}
