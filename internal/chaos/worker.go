//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// life is one leasectl process of a worker, by the boot clock.
type life struct {
	pid          int
	started      time.Duration
	offset       int64         // of its log in that of the worker
	struck       time.Duration // when it was killed or sent SIGTERM; 0 if it wasn't
	ended        time.Duration // 0 while it runs
	how          kind          // the fault that ended it; empty if it ended by itself
	result       string        // as the system reports it
	cleanly, own bool          // exit code 0; it ended without a signal from us

	// From its log, by readHistory.
	ready time.Duration // when it could claim first; 0: never
	said  []said
}

// worker is one worker of a worker type: a leasectl, and after its end the next.
type worker struct {
	of       workerType
	index    int
	program  string
	args     []string
	env      []string
	log      string                  // the file of its standard error
	deaths   func(w *worker, l life) // is called when it ends without a signal from us
	fault    sync.Mutex              // held by the one process fault that is under way
	mu       sync.Mutex
	now      *exec.Cmd
	tether   *os.File
	gone     chan struct{}
	lives    []life
	finished bool // isn't started again
}

func (w *worker) name() string { return w.of.instance(w.index) }

// control reports whether the worker must never be killed.
func (w *worker) control() bool { return w.of.control == w.index }

// start starts a leasectl, unless one runs.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != nil || w.finished {
		return nil
	}
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	r, tether, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	c := exec.Command(w.program, w.args...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = w.env, r, log, log
	now := life{started: boottime(), offset: info.Size()}
	if err := start(c); err != nil {
		_ = tether.Close()
		return fmt.Errorf("start %s: %w", w.name(), err)
	}
	now.pid = c.Process.Pid
	w.now, w.tether, w.gone = c, tether, make(chan struct{})
	w.lives = append(w.lives, now)
	go w.attend(c, w.gone)
	return nil
}

func (w *worker) attend(c *exec.Cmd, gone chan struct{}) {
	defer close(gone)
	_ = c.Wait()
	w.mu.Lock()
	last := &w.lives[len(w.lives)-1]
	last.ended, last.result, last.cleanly, last.own = boottime(), c.ProcessState.String(), c.ProcessState.Success(), last.struck == 0
	_ = w.tether.Close()
	w.now = nil
	copied, finished := *last, w.finished
	w.mu.Unlock()
	if copied.own && !finished {
		w.deaths(w, copied)
	}
}

// pid is that of the leasectl that runs, or 0.
func (w *worker) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		return 0
	}
	return w.now.Process.Pid
}

// end sends a signal that ends the leasectl, and returns what to wait for; nil if
// none runs.
func (w *worker) end(s syscall.Signal, how kind) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		return nil
	}
	last := &w.lives[len(w.lives)-1]
	if last.struck == 0 {
		last.struck, last.how = boottime(), how
	}
	_ = w.now.Process.Signal(s)
	return w.gone
}

// patience is how long an orderly end may take: the command's grace, and the time that
// leasectl gives the store.
const patience = 25 * time.Second

// wait waits until a leasectl is gone, for patience at most.
func (w *worker) wait(gone <-chan struct{}) error {
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
func (w *worker) retire(s syscall.Signal, how kind) <-chan struct{} {
	w.dismiss()
	return w.end(s, how)
}

// ready reports whether the leasectl that runs knows the store's time.
func (w *worker) ready() bool { return w.logged(readyMessage) }

// logged reports whether the leasectl that runs has logged a message that begins so.
func (w *worker) logged(message string) bool {
	w.mu.Lock()
	if w.now == nil {
		w.mu.Unlock()
		return false
	}
	offset := w.lives[len(w.lives)-1].offset
	w.mu.Unlock()
	return bytes.Contains(w.said(offset), []byte(`"message":"`+message))
}

// said is what the worker logged from an offset on.
func (w *worker) said(offset int64) []byte {
	b, err := os.ReadFile(w.log)
	if err != nil || int64(len(b)) < offset {
		return nil
	}
	return b[offset:]
}

// dump makes the leasectl write the stacks of its goroutines and die, and counts
// them.
func (w *worker) dump() (count int64, err error) {
	gone := w.retire(unix.SIGQUIT, dumpStacks)
	if gone == nil {
		return 0, fmt.Errorf("dump %s: it doesn't run", w.name())
	}
	if err := w.wait(gone); err != nil {
		return 0, err
	}
	n := bytes.Count(w.said(w.lives[len(w.lives)-1].offset), []byte("\ngoroutine "))
	if n == 0 {
		return 0, fmt.Errorf("dump %s: no goroutines in %s", w.name(), w.log)
	}
	return int64(n), nil
}
