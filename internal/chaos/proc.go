//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the whole command line of a guard.
const guardName = "lease guard"

// handle is a process, even if its number is reused.
type handle struct{ pid, fd int }

// hold opens a process that must be a child of parent (0: of any).
func hold(pid, parent int) (handle, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return handle{}, false
	}
	h := handle{pid, fd}
	// Because it was opened before, the number can't belong to another process.
	if at, _, ok := status(pid); !ok || parent != 0 && at != parent {
		h.close()
		return handle{}, false
	}
	return h, true
}

func (h handle) send(s unix.Signal) bool { return unix.PidfdSendSignal(h.fd, s, nil, 0) == nil }

func (h handle) close() { _ = unix.Close(h.fd) }

// holdStopped opens a process as hold does, stops it, and returns when it runs no more.
func holdStopped(pid, parent int) (handle, bool) {
	h, ok := hold(pid, parent)
	if !ok {
		return h, false
	}
	if !h.send(unix.SIGSTOP) {
		h.close()
		return h, false
	}
	for range 200 {
		switch _, state, ok := status(h.pid); {
		case !ok || state == 'Z' || state == 'X':
			h.close()
			return h, false
		case state == 'T':
			return h, true
		}
		time.Sleep(500 * time.Microsecond)
	}
	return h, true // in a slow system call, and stopped right after it
}

// status is the parent and the state of a process: S also if its main thread has exited, and
// others haven't.
func status(pid int) (parent int, state byte, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const threads = 17
	if len(f) <= threads {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(f[1]))
	state = f[0][0]
	if state == 'Z' && string(f[threads]) != "1" {
		state = 'S'
	}
	return parent, state, err == nil
}

// children are those of a process, of all its threads.
func children(pid int) (found []int) {
	task := fmt.Sprintf("/proc/%d/task", pid)
	threads, _ := os.ReadDir(task)
	for _, t := range threads {
		b, _ := os.ReadFile(task + "/" + t.Name() + "/children")
		for text := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(text); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// descendants are all processes below one, parents first.
func descendants(pid int) (found []int) {
	for _, child := range children(pid) {
		found = append(append(found, child), descendants(child)...)
	}
	return found
}

// family is a leasectl with its guard and command; 0 if there is none.
type family struct{ leasectl, guard, command int }

// familyOf finds the guard and the command of a leasectl.
func familyOf(leasectl int) family {
	f := family{leasectl: leasectl}
	for _, child := range children(leasectl) {
		if strings.TrimRight(commandLine(child), "\x00") != guardName {
			continue
		}
		f.guard = child
		for _, below := range children(child) {
			if strings.HasSuffix(commandLine(below), "\x00"+workCommand+"\x00") {
				f.command = below
			}
		}
	}
	return f
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(b)
}

// usage is the resources of a process, by name.
type usage map[string]int64

const (
	goroutines  = "goroutines" // by a dump, which ends the process
	descriptors = "descriptors"
	resident    = "KB of memory"
)

// usageOf reads the resources of a process, except its goroutines.
func usageOf(pid int) (usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return nil, err
	}
	var size, pages int64 // in pages
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return nil, fmt.Errorf("read /proc/%d/statm: %w", pid, err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return usage{descriptors: int64(len(files)), resident: pages * int64(os.Getpagesize()) >> 10}, err
}

// boottime is CLOCK_BOOTTIME, which all processes of the machine share.
func boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err))
	}
	return time.Duration(t.Nano())
}

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
