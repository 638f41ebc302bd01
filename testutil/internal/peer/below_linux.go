package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one in the table of the system.
type process struct {
	pid, parent int
	dead        bool // all its threads have ended
	stopped     bool // all its threads have stopped or ended
	waits       bool // or wait for what no signal interrupts
}

// below returns the descendants of a process that are alive, parents before their children. A
// server's may have left its process group and session, so these don't matter.
func below(pid int) (found []process) {
	children := map[int][]process{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, f := range folders {
		if p, ok := look(f); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, c := range children[next[0]] {
			next = append(next, c.pid)
			if !c.dead {
				found = append(found, c)
			}
		}
	}
	return found
}

// look reads a process's folder in /proc. It reports whether there still is one.
func look(folder string) (process, bool) {
	_, parent, ok := stat(folder)
	if !ok {
		return process{}, false
	}
	pid, err := strconv.Atoi(filepath.Base(folder))
	if err != nil {
		return process{}, false
	}
	p := process{pid: pid, parent: parent, dead: true, stopped: true, waits: true}
	threads, _ := filepath.Glob(folder + "/task/[0-9]*")
	for _, t := range threads {
		state, _, ok := stat(t)
		if !ok {
			continue
		}
		dead := state == "Z" || state == "X"
		p.dead = p.dead && dead
		p.stopped = p.stopped && (dead || state == "T")
		p.waits = p.waits && (dead || state == "T" || state == "D")
	}
	return p, true
}

// stat reads the state of a process or thread, and the process's parent.
func stat(folder string) (state string, parent int, ok bool) {
	b, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return "", 0, false
	}
	// The name comes before, in parentheses, and may contain anything.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}

// belowTime bounds how long the processes below one may take to stop or end.
const belowTime = 20 * time.Second

// killBelow kills all descendants of a process (SIGKILL), and waits until they are gone.
func killBelow(pid int) {
	for began := time.Now(); time.Since(began) < belowTime; time.Sleep(time.Millisecond) {
		alive := below(pid)
		if len(alive) == 0 {
			return
		}
		for _, p := range alive {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// pauseBelow stops all descendants of a process (SIGSTOP). It ends when it has found all stopped
// twice: after the first time, none could begin another.
func pauseBelow(pid int) error {
	still := 0
	for began := time.Now(); time.Since(began) < belowTime; time.Sleep(time.Millisecond) {
		alive := below(pid)
		if len(alive) == 0 {
			return fmt.Errorf("process %d has no server: %w", pid, os.ErrProcessDone)
		}
		if !slices.ContainsFunc(alive, func(p process) bool { return !p.stopped && !(p.waits && hasStoppedChild(alive, p.pid)) }) {
			if still++; still == 2 {
				return nil
			}
			continue
		}
		still = 0
		for _, p := range alive {
			_ = syscall.Kill(p.pid, syscall.SIGSTOP)
		}
	}
	return fmt.Errorf("the processes below %d haven't stopped within %v", pid, belowTime)
}

// hasStoppedChild reports whether a process has a child that has stopped. If the process is in
// vfork, it waits for that child, and can't stop before the child goes on.
func hasStoppedChild(alive []process, pid int) bool {
	return slices.ContainsFunc(alive, func(p process) bool { return p.parent == pid && p.stopped })
}

// resumeBelow lets all descendants of a process go on (SIGCONT).
func resumeBelow(pid int) error {
	var errs []error
	for _, p := range below(pid) {
		if err := syscall.Kill(p.pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
