package guard

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// process is what is known of a process that isn't reaped, mostly by /proc/PID/stat.
type process struct {
	pid, parent, group, session int
	// state is that of /proc, and threads how many threads there are. When the main thread
	// has exited, the state is Z while others work on. With a debugger, those that have exited
	// count until it has taken notice: they are left out if all have.
	state   byte
	threads int
	// hidden is set when /proc doesn't show the process.
	hidden bool
}

// exited reports whether the thread that was read, of a process its main thread, has run its last
// instruction: the kernel has taken its memory and files, and given its children to others.
func (p process) exited() bool { return p.state == 'Z' || p.state == 'X' }

// dead reports whether it runs no more code and waits to be reaped.
func (p process) dead() bool { return p.exited() && p.threads <= 1 }

// stat reads a process; false if there is none.
func stat(pid int) (process, bool) {
	p, ok := readStat("/proc/" + strconv.Itoa(pid) + "/stat")
	p.pid = pid
	if ok && p.exited() && p.threads > 1 && allExited(pid) {
		p.threads = 1
	}
	return p, ok
}

// readStat reads what the kernel says of a process, or of one of its threads.
func readStat(path string) (process, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may itself hold blanks and parentheses.
	end := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[end+1:])
	const count = 17 // fields after the state
	if end < 0 || len(f) <= count || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{state: f[0][0]}
	for i, to := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session, count: &p.threads} {
		if *to, err = strconv.Atoi(string(f[i])); err != nil {
			return process{}, false
		}
	}
	return p, true
}

// allExited reports whether all threads of a process have exited: each in turn is found so, and
// none came meanwhile that one of them may have started before.
func allExited(pid int) bool {
	before := threads(pid)
	for _, thread := range before {
		if p, ok := readStat(threadsDir(pid) + thread + "/stat"); !ok || !p.exited() {
			return false
		}
	}
	return len(before) > 0 && slices.Equal(before, threads(pid))
}

// threads are the names of a process's threads in threadsDir.
func threads(pid int) (names []string) {
	dir, err := os.Open(threadsDir(pid))
	if err != nil {
		return nil
	}
	names, _ = dir.Readdirnames(-1)
	_ = dir.Close()
	return names
}

func threadsDir(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/task/" }

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
	var found []int
	for _, thread := range threads(pid) {
		b, err := os.ReadFile(threadsDir(pid) + thread + "/children")
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
		// A sandbox may deny this call alone.
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
			return err
		}
	}
	// Kernels before 5.3, and sandboxes, have no pidfd.
	return unix.Kill(p.pid, unix.SIGKILL)
}
