//go:build unix && !aix

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// spawnResult is the outcome of starting the command.
type spawnResult struct {
	pid int
	// cgroup is the command's, or empty.
	cgroup cgroup
	err    error
}

// spawn starts the command in a new process group, and in its cgroup. It is done beside the
// loop, since an exec from a file server that hangs must not keep the guard from
// its orders and its deadline.
func spawn(o order, in cgroup) <-chan spawnResult {
	c := make(chan spawnResult, 1)
	go func() {
		// Pdeathsig goes off when the thread that forked ends: this goroutine
		// keeps its thread, and never returns.
		runtime.LockOSThread()
		r := spawnIn(in, o)
		// Held open here, a pipe that the command closes would never end.
		for fd := fdStdin; fd <= fdStderr; fd++ {
			_ = syscall.Close(fd)
		}
		c <- r
		select {}
	}()
	return c
}

// forkExec is the system's, but in the test of a program that dies meanwhile.
var forkExec = syscall.ForkExec

// spawnIn starts the command in a cgroup, or without one where that fails: a kernel
// or a sandbox may refuse it only now.
func spawnIn(c cgroup, o order) spawnResult {
	attr := &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: []uintptr{fdStdin, fdStdout, fdStderr}, Sys: o.attr()}
	if c != "" {
		if started, err := c.enter(attr.Sys); err == nil {
			pid, err := forkExec(o.Path, o.Argv, attr)
			started()
			if err == nil {
				return spawnResult{pid: pid, cgroup: c}
			}
		}
		c.remove()
		attr.Sys = o.attr()
	}
	pid, err := forkExec(o.Path, o.Argv, attr)
	return spawnResult{pid: pid, err: err}
}

// keepFiles keeps a command from the files that the program has inherited, such as one with a secret: they are none of
// another user's business.
func keepFiles() {
	const usual = 1024 // where the system doesn't say which are open
	open := make([]int, usual)
	for fd := range open {
		open[fd] = fd
	}
	names, _ := os.ReadDir("/dev/fd")
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil {
			open = append(open, fd)
		}
	}
	for _, fd := range open {
		if fd > syscall.Stderr {
			syscall.CloseOnExec(fd)
		}
	}
}

// attr are the attributes of the command's process.
func (o order) attr() *syscall.SysProcAttr {
	attr := commandAttr()
	if u := o.User; u != nil {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	return attr
}

// describe reports why a command could not be started, and what to do about it.
func describe(o order, err error) report {
	var errno syscall.Errno
	errors.As(err, &errno)
	r := report{Errno: errno}
	if o.Dir != "" {
		switch info, dirErr := os.Stat(o.Dir); {
		case dirErr != nil:
			r.Failure = fmt.Sprintf("working directory %q: %v", o.Dir, errnoOf(dirErr))
			return r
		case !info.IsDir():
			r.Failure = fmt.Sprintf("working directory %q: not a directory", o.Dir)
			return r
		}
	}
	path := o.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	info, statErr := os.Stat(path)
	switch {
	case statErr != nil:
		r.Failure = errnoOf(statErr).Error()
	case info.IsDir():
		r.Failure = "is a directory"
	case errno == syscall.ENOENT:
		r.Failure = "its interpreter is missing (see its #! line, or the loader that it was linked for)"
	case errno == syscall.EACCES && info.Mode()&0o111 == 0:
		r.Failure = "not executable (try chmod +x)"
	case errno == syscall.ENOEXEC:
		r.Failure = "not a program for this machine (a script needs a #! line)"
	case errno == syscall.E2BIG:
		r.Failure = "arguments and environment are too long"
	case errno == syscall.EINVAL:
		r.Failure = "an argument or environment variable holds a zero byte"
	case errno == syscall.EPERM:
		r.Failure, r.Errno = "the system doesn't permit it: a sandbox, such as a seccomp profile, may deny a system call that starting takes", 0
	default:
		r.Failure = err.Error()
	}
	return r
}

// errnoOf strips the operation and the path, which the text around names.
func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
