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

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent, group, session int
	state                       byte
}

// dead reports whether it runs no more code and waits to be reaped.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// stat reads a process; false if there is none.
func stat(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may itself hold blanks and parentheses.
	end := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[end+1:])
	if end < 0 || len(f) < 4 || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(f[i+1])); err != nil {
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

// scannedChildren finds the children among all processes.
func scannedChildren(pid int) []int {
	var found []int
	for _, p := range processes() {
		if p.parent == pid {
			found = append(found, p.pid)
		}
	}
	return found
}

// walk visits the descendants of root, parents before their children: a
// supervisor must be killed before what it would start anew.
func walk(root int, visit func(process)) {
	todo := []int{root}
	seen := map[int]bool{root: true}
	for len(todo) > 0 {
		parent := todo[0]
		todo = todo[1:]
		for _, pid := range children(parent) {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			p, ok := stat(pid)
			// A child of another is a number used anew, or an orphan that the
			// next walk finds at the root.
			if ok && (p.parent == parent || p.parent == root) {
				todo = append(todo, pid)
				visit(p)
			}
		}
	}
}

// killTree kills the descendants of root that it finds in one walk. It returns
// how many of them were alive and which of these it wasn't allowed to kill.
func killTree(root int) (alive int, refused []int) {
	walk(root, func(p process) {
		if p.dead() {
			return
		}
		alive++
		same := func(now process) bool { return now.parent == p.parent || now.parent == root }
		if errors.Is(killIf(p.pid, same), unix.EPERM) {
			refused = append(refused, p.pid)
		}
	})
	return alive, refused
}

// killIf kills a process if it is still one of ours. The number may have been
// freed and used anew since it was found; a pidfd opened before the check pins
// the process that is checked.
func killIf(pid int, ours func(process) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return err
	}
	pinned := err == nil
	if pinned {
		defer func() { _ = unix.Close(fd) }()
	}
	if p, ok := stat(pid); !ok || !ours(p) {
		return unix.ESRCH
	}
	if pinned {
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	// Kernels before 5.3, and sandboxes, have no pidfd.
	return unix.Kill(pid, unix.SIGKILL)
}
