package guard

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// process is what is known of a process that isn't reaped, mostly by /proc/PID/stat.
type process struct {
	pid, parent, group, session int
	// state and threads are those of /proc. When the main thread has exited, the state
	// is Z while others work on.
	state   byte
	threads int
	// hidden is set when /proc doesn't show the process.
	hidden bool
}

// dead reports whether it runs no more code and waits to be reaped.
func (p process) dead() bool {
	return (p.state == 'Z' || p.state == 'X') && p.threads <= 1
}

// stat reads a process; false if there is none.
func stat(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may itself hold blanks and parentheses.
	end := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[end+1:])
	const threads = 17 // fields after the state
	if end < 0 || len(f) <= threads || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	for i, to := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session, threads: &p.threads} {
		if *to, err = strconv.Atoi(string(f[i])); err != nil {
			return process{}, false
		}
	}
	return p, true
}

// processes reads all of /proc, by number of process.
func processes() map[int]process {
	all := map[int]process{}
	dir, err := os.Open("/proc")
	if err != nil {
		return all
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := stat(pid); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// listsChildren reports whether the kernel lists children of a process
// (CONFIG_PROC_CHILDREN, which desktop and server kernels have).
var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// children returns the children of a process. While the tree changes it may
// miss some, so callers look again until they know that none is left.
func children(pid int) []int {
	if listsChildren() {
		return listedChildren(pid)
	}
	return scannedChildren(pid)
}

// listedChildren reads the children of each thread: an orphan belongs to
// whichever thread of the subreaper the kernel finds first.
func listedChildren(pid int) []int {
	task := "/proc/" + strconv.Itoa(pid) + "/task/"
	dir, err := os.Open(task)
	if err != nil {
		return nil
	}
	threads, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	var found []int
	for _, thread := range threads {
		b, err := os.ReadFile(task + thread + "/children")
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// scannedChildren finds the children among all processes that /proc shows.
func scannedChildren(pid int) []int {
	var found []int
	for _, p := range shownChildren(pid) {
		found = append(found, p.pid)
	}
	return found
}

// walk visits the descendants of root, parents before their children: a
// supervisor must be killed before what it would start anew.
func walk(root int, visit func(process)) {
	todo := []process{{pid: root}}
	seen := map[int]bool{root: true}
	for len(todo) > 0 {
		parent := todo[0]
		todo = todo[1:]
		for _, p := range offspring(parent) {
			// A child of another is a number used anew, or an orphan that the
			// next walk finds at the root.
			if !seen[p.pid] && (p.parent == parent.pid || p.parent == root) {
				seen[p.pid] = true
				todo = append(todo, p)
				visit(p)
			}
		}
	}
}

// killTree kills the descendants of root that it finds in one walk, whatever
// their state.
func killTree(root int) look {
	var l look
	walk(root, func(p process) {
		l.add(p, killIf(p, func(now process) bool { return now.parent == p.parent || now.parent == root }))
	})
	return l
}

// killIf kills a process if it is still one of ours. The number may have been
// freed and used anew since it was found; a pidfd opened before the check pins
// the process that is checked.
func killIf(p process, ours func(process) bool) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return err
	}
	pinned := err == nil
	if pinned {
		defer func() { _ = unix.Close(fd) }()
	}
	if now, ok := again(p); !ok || !ours(now) {
		return unix.ESRCH
	}
	if pinned {
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	// Kernels before 5.3, and sandboxes, have no pidfd.
	return unix.Kill(p.pid, unix.SIGKILL)
}
