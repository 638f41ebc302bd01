//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// perType is how many workers a worker type has.
const perType = 3

// workerType is a worker type with its workers' options.
type workerType struct {
	name       string
	interval   time.Duration
	tieBreak   string
	priorities [perType]int
	// control is the index of the worker that is stopped and cut off, but never
	// killed, or -1.
	control  int
	flags    []string // more flags of leasectl run
	behavior string   // of its commands
	command  string   // the program; empty: this one
	under    []string // start leasectl under this program
}

// workerTypes are the worker types of a run. Their slots are of different length, so
// that a long run has many slots, and faults meet all phases of each.
var workerTypes = []workerType{
	{name: "alpha", interval: time.Second, tieBreak: "sticky", priorities: [perType]int{0, 0, 1}, control: -1},
	{name: "beta", interval: 2 * time.Second, tieBreak: "rotate", priorities: [perType]int{0, 1, 1}, control: 2},
	{name: "gamma", interval: 3 * time.Second, tieBreak: "random", priorities: [perType]int{0, 1, 2}, control: -1},
}

// cycle is a multiple of all intervals.
const cycle = 6 * time.Second

// slower is by how much all that is longer on a store.
func slower(store string) time.Duration { return time.Duration(max(serverStores[store].slower, 1)) }

// typesOn are the worker types of a run on a store.
func typesOn(store string) []workerType {
	all := slices.Clone(workerTypes)
	for i := range all {
		all[i].interval *= slower(store)
	}
	return all
}

// margin is how long before the end of its lease a command must be gone. It is more
// than leasectl's own choice for slots of this length: runs share their machine
// with others, and a guard that gets no processor can't kill.
const margin = 100 * time.Millisecond

// grace is how long a command has between SIGTERM and SIGKILL.
const grace = 100 * time.Millisecond

// instance is the label of a worker: alpha-0.
func (t workerType) instance(i int) string { return fmt.Sprintf("%s-%d", t.name, i) }

// arguments are those of leasectl for a worker.
func (t workerType) arguments(i int, store, program string) []string {
	args := []string{
		"run", "--store", store, "--worker-type", t.name, "--instance-id", t.instance(i), "--every", t.interval.String(),
		"--priority", strconv.Itoa(t.priorities[i%perType]), "--tie-break", t.tieBreak, "--margin", margin.String(), "--stop-grace", grace.String(),
		"--log-format", "json", "--log-level", "debug", "--tether",
	}
	return append(append(args, t.flags...), "--", cmp.Or(t.command, program), workCommand)
}

// life is one leasectl process of a worker, by the boot clock.
type life struct {
	pid     int
	started time.Duration
	log     string // the file of its standard error
	cmd     *exec.Cmd
	gone    chan struct{} // closed when it has ended
	struck  time.Duration // when it was killed or sent SIGTERM; 0 if it wasn't
	how     kind          // the fault that ended it; empty if it ended by itself
	ended   time.Duration // 0 while it runs
	result  string        // as the system reports it
	cleanly bool          // exit code 0

	// From its log, by readHistory.
	ready time.Duration // when it could claim first; 0: never
	said  []said
}

// worker is one worker of a worker type: a leasectl, and after its end the next.
type worker struct {
	h        *harness
	of       workerType
	index    int
	older    bool       // its next leasectl is the older one
	fault    sync.Mutex // held by the one process fault that is under way
	mu       sync.Mutex
	lives    []*life
	finished bool // isn't started again
}

func (w *worker) name() string { return w.of.instance(w.index) }

// control reports whether the worker must never be killed.
func (w *worker) control() bool { return w.of.control == w.index }

// now is the leasectl that runs, or nil.
func (w *worker) now() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running()
}

// running is now, with the lock held.
func (w *worker) running() *life {
	if n := len(w.lives); n > 0 && w.lives[n-1].ended == 0 {
		return w.lives[n-1]
	}
	return nil
}

// olderFlags are more flags for the older leasectl: what this version does without them.
var olderFlags = []string{"--join-mid-slot"}

// start starts a leasectl, unless one runs.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running() != nil || w.finished {
		return nil
	}
	l := &life{log: filepath.Join(w.h.dir, fmt.Sprintf("%s.%d.log", w.name(), len(w.lives))), gone: make(chan struct{})}
	log, err := os.Create(l.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	program, of := w.h.program, w.of
	if w.older {
		program, of.flags = w.h.older, slices.Concat(of.flags, olderFlags)
	}
	argv := slices.Concat(of.under, []string{program}, of.arguments(w.index, w.h.backend.address(of, w.index), w.h.self))
	l.cmd = exec.Command(argv[0], argv[1:]...)
	l.cmd.Env = append(os.Environ(), "GOTRACEBACK=all", logVariable+"="+w.h.workLog(w.of), fenceVariable+"="+w.h.fencePath(), behaviorVariable+"="+w.of.behavior)
	l.cmd.Stdout, l.cmd.Stderr = log, log
	if _, err := l.cmd.StdinPipe(); err != nil { // the tether, open until the end
		return err
	}
	l.started = boottime()
	if err := start(l.cmd); err != nil {
		return fmt.Errorf("start %s: %w", w.name(), err)
	}
	l.pid = l.cmd.Process.Pid
	w.lives = append(w.lives, l)
	go w.attend(l)
	return nil
}

// attend waits for the end of a leasectl, and starts the next if none was to come.
func (w *worker) attend(l *life) {
	defer close(l.gone)
	_ = l.cmd.Wait()
	w.mu.Lock()
	l.ended, l.result, l.cleanly = boottime(), l.cmd.ProcessState.String(), l.cmd.ProcessState.Success()
	expected := l.struck != 0 || w.finished
	w.mu.Unlock()
	if expected {
		return
	}
	w.h.bad("leasectl of %s (pid %d) ended by itself: %s", w.name(), l.pid, l.result)
	if l.ended-l.started >= time.Second { // else it would do so again and again
		w.h.fail(w.start())
	}
}

// pid is that of the leasectl that runs, or 0.
func (w *worker) pid() int {
	if l := w.now(); l != nil {
		return l.pid
	}
	return 0
}

// end sends a signal that ends the leasectl, and returns what to wait for; nil if
// none runs.
func (w *worker) end(s unix.Signal, how kind) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.running()
	if l == nil {
		return nil
	}
	if l.struck == 0 {
		l.struck, l.how = boottime(), how
	}
	_ = l.cmd.Process.Signal(s)
	return l.gone
}

// patience is how long an orderly end may take: the command's grace, and the time that
// leasectl gives the store.
const patience = 25 * time.Second

// wait waits until a leasectl is gone, if there was one, for patience at most.
func (w *worker) wait(gone <-chan struct{}) error {
	if gone == nil {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s doesn't end within %v", w.name(), patience)
	}
}

// dismiss keeps the worker from being started again.
func (w *worker) dismiss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
}

// retire ends the worker for good.
func (w *worker) retire(s unix.Signal, how kind) <-chan struct{} {
	w.dismiss()
	return w.end(s, how)
}

// ready reports whether the leasectl that runs knows the store's time.
func (w *worker) ready() bool { return w.logged(readyMessage) }

// logged reports whether the leasectl that runs has logged a message that begins so.
func (w *worker) logged(message string) bool {
	l := w.now()
	return l != nil && bytes.Contains(l.text(), []byte(`"message":"`+message))
}

// text is what a leasectl has logged.
func (l *life) text() []byte {
	text, _ := os.ReadFile(l.log)
	return text
}

// dump makes the leasectl write the stacks of its goroutines and die, and counts
// them.
func (w *worker) dump() (count int64, err error) {
	l := w.now()
	if l == nil {
		return 0, fmt.Errorf("dump %s: it doesn't run", w.name())
	}
	w.retire(unix.SIGQUIT, dumpStacks)
	if err := w.wait(l.gone); err != nil {
		return 0, err
	}
	n := bytes.Count(l.text(), []byte("\ngoroutine "))
	if n == 0 {
		return 0, fmt.Errorf("dump %s: no goroutines in %s", w.name(), l.log)
	}
	return int64(n), nil
}
