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

// handle is a process, whatever becomes of its number.
type handle struct{ pid, fd int }

// hold opens a process that must be a child of parent (0: whosever).
func hold(pid, parent int) (handle, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return handle{}, false
	}
	h := handle{pid, fd}
	// Opened before it is looked at, the number can't have another meaning.
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
	return true // in a system call that takes its time, and stopped right behind it
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

// descendants are all below a process, parents first.
func descendants(pid int) (found []int) {
	for _, child := range children(pid) {
		found = append(append(found, child), descendants(child)...)
	}
	return found
}

// family is a leasectl with what runs below it; 0 for what doesn't.
type family struct{ leasectl, guard, command int }

// familyOf looks what runs below a leasectl.
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

// usage is what a process takes.
type usage struct {
	rss            int64 // bytes
	threads, files int
	goroutines     int // by a dump, which ends it
}

// usageOf reads what a process takes.
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

// adopt makes this process the one that orphans below it fall to: nothing that a
// fault leaves behind can get lost.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
