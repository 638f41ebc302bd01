package guard

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A /proc that is mounted with hidepid=2, as by systemd's ProtectProc=invisible,
// hides from an ordinary user the processes of other users, and those of the same user that
// aren't dumpable. The kernel's list of children has their numbers all the same, and system
// calls take numbers.

// offspring returns the children of a process, also those that /proc hides. Of one
// that is hidden itself, /proc shows no list: these are the children that it doesn't hide.
func offspring(parent process) []process {
	if parent.hidden {
		return shownChildren(parent.pid)
	}
	var found []process
	var unread []int
	for _, pid := range children(parent.pid) {
		if p, ok := stat(pid); ok {
			found = append(found, p)
		} else {
			unread = append(unread, pid)
		}
	}
	if len(unread) == 0 {
		return found
	}
	// What is still a child after it couldn't be read hasn't just gone.
	still := children(parent.pid)
	for _, pid := range unread {
		if slices.Contains(still, pid) {
			found = append(found, glimpse(pid, parent.pid))
		}
	}
	return found
}

// shownChildren are the children of a hidden process that aren't hidden themselves.
func shownChildren(pid int) []process {
	var found []process
	for _, p := range processes() {
		if p.parent == pid {
			found = append(found, p)
		}
	}
	return found
}

// glimpse is what system calls say of a hidden process.
func glimpse(pid, parent int) process {
	p := process{pid: pid, parent: parent, hidden: true, state: '?'}
	p.group, _ = unix.Getpgid(pid)
	p.session, _ = unix.Getsid(pid)
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		// A pidfd is readable when the last thread has exited.
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, 0); n == 1 && err == nil {
			p.state = 'Z'
		}
		_ = unix.Close(fd)
	}
	return p
}

// again looks at a process once more; false if it is gone.
func again(p process) (process, bool) {
	now, ok := stat(p.pid)
	if !ok && p.hidden && slices.Contains(children(p.parent), p.pid) {
		return glimpse(p.pid, p.parent), true
	}
	return now, ok
}

// hides reports whether /proc may hide processes from this one.
func hides() bool {
	mounts, err := os.ReadFile("/proc/self/mounts")
	return err != nil || hidesProcesses(string(mounts))
}

// hidesProcesses reports whether the newest /proc of a list of mounts hides processes.
func hidesProcesses(mounts string) bool {
	hiding := false
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == "/proc" && f[2] == "proc" {
			hiding = slices.ContainsFunc(strings.Split(f[3], ","), func(option string) bool {
				value, is := strings.CutPrefix(option, "hidepid=")
				return is && value != "0" && value != "off"
			})
		}
	}
	return hiding
}
