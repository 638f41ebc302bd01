package guard

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// refusedFor is how long the guard goes on trying when all that is left are
// processes that it isn't allowed to kill.
const refusedFor = 2 * time.Second

// prepare makes this process the one that orphaned descendants fall to.
func prepare() error {
	if err := setSubreaper(); err != nil {
		return err
	}
	if _, ok := stat(os.Getpid()); !ok {
		return errors.New("the guard can't read /proc/self/stat; /proc must be mounted")
	}
	return nil
}

func setSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// commandAttr puts the command in a group of its own, killed with the guard.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// exited reports whether the command has ended, and leaves it to be reaped.
func (f *family) exited() bool {
	if f.reaped {
		return true
	}
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, f.main, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && info.Signo != 0
		}
	}
}

// reap collects orphans that have ended, but not the command.
func (f *family) reap() {
	for _, pid := range children(os.Getpid()) {
		// Until the command's number is known any child may be it.
		if f.main != 0 && pid != f.main {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// groupAlive reports whether the process group has members that still run.
func (f *family) groupAlive() bool {
	alive := false
	walk(os.Getpid(), func(p process) {
		alive = alive || p.group == f.main && !p.dead()
	})
	return alive
}

// killAll kills until no descendant is left, and returns those that the system
// refused to kill.
func (f *family) killAll() []int {
	if f.main != 0 && !f.reaped {
		// One step for the whole group, which no fork can slip through.
		_ = syscall.Kill(-f.main, syscall.SIGKILL)
	}
	return untilNone(func() (found, alive int, refused []int) {
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return 0, 0, nil
			}
			if pid != 0 && pid == f.main {
				f.reaped, f.status = true, ws
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		alive, refused = killTree(os.Getpid())
		return 1, alive, refused // at least a child that isn't reaped
	})
}

// untilNone repeats a look, which kills what it finds, until there is nothing to find,
// and returns those that the system refused to kill. A look returns how many it found,
// how many of these were alive, and which of the living it wasn't allowed to kill.
func untilNone(look func() (found, alive int, refused []int)) []int {
	var refusedSince time.Duration
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		found, alive, refused := look()
		now := Boottime()
		switch {
		case found == 0:
			return nil
		case len(refused) == 0 || alive > len(refused):
			refusedSince = 0
		case refusedSince == 0:
			refusedSince = now
		case now-refusedSince > refusedFor:
			return refused
		}
		time.Sleep(pause)
	}
}
