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

// spawner starts this program's children, so that the kernel kills them when this
// process dies, and reaps orphans. All children must be started by it; it takes others
// for orphans.
type spawner struct {
	requests chan func()
	mu       sync.Mutex
	own      map[int]bool // children with a caller of wait
	stop     chan struct{}
	done     sync.WaitGroup
}

func newSpawner() (*spawner, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	s := &spawner{requests: make(chan func()), own: map[int]bool{}, stop: make(chan struct{})}
	go func() {
		// The kernel's "parent" of Pdeathsig is this thread. It stays.
		runtime.LockOSThread()
		for f := range s.requests {
			f()
		}
	}()
	s.done.Go(s.reap)
	return s, nil
}

// start starts a command. The caller must call wait.
func (s *spawner) start(c *exec.Cmd) (err error) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setpgid = true
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	ready := make(chan struct{})
	s.requests <- func() {
		defer close(ready)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err = c.Start(); err == nil {
			s.own[c.Process.Pid] = true
		}
	}
	<-ready
	return err
}

// wait waits for the end of a command.
func (s *spawner) wait(c *exec.Cmd) error {
	err := c.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, c.Process.Pid)
	return err
}

// orphans are the children that this process adopted: mostly guards whose leasectl was
// killed.
func (s *spawner) orphans() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(children(unix.Getpid()), func(pid int) bool { return s.own[pid] })
}

// reap collects orphans that have ended.
func (s *spawner) reap() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, pid := range s.orphans() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
	}
}

// left are all processes that descend from this one.
func (s *spawner) left() []int {
	return slices.DeleteFunc(descendants(unix.Getpid()), func(pid int) bool {
		_, state, ok := status(pid)
		return !ok || state == 'Z'
	})
}

// killAll kills the descendants of this process until there are none.
func (s *spawner) killAll() error {
	for range 500 {
		left := s.left()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			if h, ok := hold(pid, 0); ok {
				h.send(unix.SIGKILL)
				h.close()
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("processes can't be killed")
}

// close ends the collecting.
func (s *spawner) close() {
	close(s.stop)
	s.done.Wait()
	close(s.requests)
}
