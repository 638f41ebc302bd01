//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// stop stops a process and returns when it runs no more.
func (h handle) stop() bool {
	if !h.send(unix.SIGSTOP) {
		return false
	}
	for range 200 {
		switch _, state, ok := status(h.pid); {
		case !ok || state == 'Z' || state == 'X':
			return false
		case state == 'T':
			return true
		}
		time.Sleep(500 * time.Microsecond)
	}
	return true // in a slow system call, and stopped right after it
}

// status is the parent and the state of a process.
func status(pid int) (parent int, state byte, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(f[1]))
	return parent, f[0][0], err == nil
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

// usage is the resources of a process.
type usage struct {
	rss            int64 // bytes
	threads, files int
	goroutines     int // by a dump, which ends it
}

// usageOf reads the resources of a process.
func usageOf(pid int) (u usage, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for text := range strings.Lines(string(b)) {
		f := strings.Fields(text)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			u.rss = n << 10
		case "Threads:":
			u.threads = int(n)
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	u.files = len(files)
	return u, err
}

// adopt makes this process the parent of orphans below it, so that no process that a
// fault leaves can get lost.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// boottime is CLOCK_BOOTTIME, which all processes of the machine share.
func boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err))
	}
	return time.Duration(t.Nano())
}
