//go:build linux

package main

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// thread runs functions on one thread that stays: the kernel's "parent" of Pdeathsig is
// the thread that starts a child.
var thread = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range calls {
			f()
		}
	}()
	return calls
})

// start starts a child, so that the kernel kills it when this process dies.
func start(c *exec.Cmd) (err error) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan struct{})
	thread() <- func() {
		defer close(started)
		err = c.Start()
	}
	<-started
	return err
}

// adopt makes this process the parent of orphans below it, so that no process that a
// fault leaves can get lost. When they end they stay as zombies, of which no harness has
// many, until it ends.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// left are all processes that descend from this one, and run.
func left() []int {
	return slices.DeleteFunc(descendants(unix.Getpid()), func(pid int) bool {
		_, state, ok := status(pid)
		return !ok || state == 'Z'
	})
}

// killAll kills the descendants of this process until there are none.
func killAll() error {
	for range 500 {
		all := left()
		if len(all) == 0 {
			return nil
		}
		for _, pid := range all {
			if h, ok := hold(pid, 0); ok {
				h.send(unix.SIGKILL)
				h.close()
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("processes can't be killed")
}

// reapAll collects all children, which must have ended.
func reapAll() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
