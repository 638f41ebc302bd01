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

// family is the command and all its descendants, as seen from the guard.
type family struct {
	// main is the command, which leads its process group; 0 until it runs. As
	// long as it isn't reaped its number can't mean another group.
	main   int
	reaped bool
	status syscall.WaitStatus
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

// terminate asks the process group to end. A stopped one must run to hear it.
func (f *family) terminate() {
	_ = syscall.Kill(-f.main, syscall.SIGTERM)
	_ = syscall.Kill(-f.main, syscall.SIGCONT)
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
	var refusedSince time.Duration
	pause := 100 * time.Microsecond
	for {
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return nil
			}
			if pid != 0 && pid == f.main {
				f.reaped, f.status = true, ws
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		alive, refused := killTree(os.Getpid())
		now := Boottime()
		switch {
		case len(refused) == 0 || alive > len(refused):
			refusedSince = 0
		case refusedSince == 0:
			refusedSince = now
		case now-refusedSince > refusedFor:
			return refused
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}
