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

// killAll kills the process group and waits for the command, also for one that is about to start.
func (f *family) killAll() survivors {
	if f.spawning != nil {
		f.main = (<-f.spawning).pid
	}
	if f.main == 0 {
		return survivors{}
	}
	_ = syscall.Kill(-f.main, syscall.SIGKILL)
	for !f.reaped {
		pid, err := syscall.Wait4(f.main, &f.status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			break
		}
		f.reaped = pid == f.main
	}
	return survivors{}
}

// awaitDeath, backUp and rescue are what the program does for a guard that was
// killed or stopped: kill the command's process group.

func awaitDeath(int) {}

func (r remains) backUp() (alive, refused int) {
	if r.command != 0 && syscall.Kill(-r.command, syscall.SIGKILL) == nil {
		return 1, 0
	}
	return 0, 0
}

func (r remains) rescue() survivors {
	for {
		if alive, _ := r.backUp(); alive == 0 {
			return survivors{}
		}
		time.Sleep(time.Millisecond)
	}
}

// cgroup is never made: only Linux has cgroups.
type cgroup string

func makeCgroup() cgroup { return "" }

func (c cgroup) enter(*syscall.SysProcAttr) (started func(), err error) { return func() {}, nil }

func (c cgroup) populated() bool { return false }

func (c cgroup) remove() {}
