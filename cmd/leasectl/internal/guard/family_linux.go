package guard

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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

// killAll kills until no descendant is left, which the kernel confirms: a process
// without children gets ECHILD. While the command is about to start, that proves nothing. It
// returns those that can't be killed.
//
// A debugger that isn't a descendant may keep dead ones from being reaped. There is proof
// without ECHILD, too: what lives has a living parent, since the dead have no children, and the
// chain of these ends at a child of this process. New children come at the end of the kernel's list,
// and only we take any out. So nothing lives if all children were found dead, and the list, read
// once more, has no others.
func (f *family) killAll() survivors {
	// Without that list, /proc must show all.
	blind := !listsChildren() && hides()
	if f.main != 0 && !f.reaped {
		// One step for the whole group, which no fork can slip through.
		_ = syscall.Kill(-f.main, syscall.SIGKILL)
	}
	left := until(func() look {
		starting := f.starting() // If it no longer is, what it started is seen below.
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				l := f.cgroup.kill()
				l.join(starting)
				return l
			}
			if pid != 0 && pid == f.main {
				f.reaped, f.status = true, ws
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		l := f.cgroup.kill()
		l.join(killTree(os.Getpid()))
		l.unseen = l.unseen || blind || l.found == 0 // There is a child that isn't reaped.
		l.join(starting)
		return l
	})
	f.cgroup.remove()
	return left
}

// starting is the command, counted as alive while it may be about to start.
func (f *family) starting() (l look) {
	select {
	case <-f.spawning:
		f.spawning = nil
	default:
	}
	if f.spawning != nil {
		l.found, l.alive = 1, 1
	}
	return l
}
