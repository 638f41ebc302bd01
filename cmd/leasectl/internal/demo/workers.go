package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// names are those of the workers, in the order of their priorities.
var names = []string{"north", "east", "south"}

// workers are the workers of the demo.
type workers struct {
	env      []string
	dir      string
	ledger   string
	log      string
	interval time.Duration

	running map[string]*worker
	killed  string // the name of the worker that was killed, even if it is back
	// died gets an error when a worker ends by itself.
	died chan error
}

// worker is a process of leasectl run.
type worker struct {
	name  string
	cmd   *exec.Cmd
	pipe  io.Closer // the worker ends at once when this is closed
	ready chan struct{}
	done  chan struct{}

	expected atomic.Bool // to end
	mu       sync.Mutex
	last     []byte
	file     *os.File
}

func newWorkers(env []string, dir, ledger, log string, interval time.Duration) *workers {
	return &workers{
		env: env, dir: dir, ledger: ledger, log: log, interval: interval,
		running: map[string]*worker{}, died: make(chan error, len(names)+1),
	}
}

// priorityOf is the priority of a worker.
func priorityOf(name string) int { return slices.Index(names, name) }

// start starts a worker.
func (all *workers) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w := &worker{name: name, ready: make(chan struct{}), done: make(chan struct{})}
	w.file, err = os.OpenFile(filepath.Join(all.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.cmd = exec.Command(self, "run",
		"--store", "sqlite:"+all.ledger, "--worker-type", workerType, "--instance-id", name,
		"--priority", strconv.Itoa(priorityOf(name)), "--every", all.interval.String(),
		"--stop-grace", "30ms", "--tether", "-v",
		"--", self, WorkCommand, all.log)
	w.cmd.Env, w.cmd.Stderr, w.cmd.WaitDelay = all.env, w, time.Second
	ownGroup(w.cmd)
	if w.pipe, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		_ = w.file.Close()
		return fmt.Errorf("start worker %s: %w", name, err)
	}
	all.running[name] = w
	go func() {
		defer close(w.done)
		_ = w.cmd.Wait() // its state says more
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = w.file.Close()
		if !w.expected.Load() {
			all.died <- fmt.Errorf("worker %s ended by itself: %v: %s", name, w.cmd.ProcessState, bytes.TrimSpace(w.last))
		}
	}()
	return nil
}

// Write takes the worker's log: it goes to a file, and shows when the worker is ready.
func (w *worker) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(b, []byte(" ready: ")) {
		select {
		case <-w.ready:
		default:
			close(w.ready)
		}
	}
	w.last = append(w.last[:0], b...)
	return w.file.Write(b)
}

// awaitReady waits until all workers know the store's time and compete.
func (all *workers) awaitReady(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, name := range names {
		select {
		case <-all.running[name].ready:
		case err := <-all.died:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("worker %s is not ready after %v", name, limit)
		}
	}
	return nil
}

// kill kills a worker with SIGKILL and returns its pid.
func (all *workers) kill(name string) int {
	w := all.running[name]
	all.killed = name
	w.expected.Store(true)
	_ = w.cmd.Process.Kill()
	<-w.done
	delete(all.running, name)
	return w.cmd.Process.Pid
}

// stop stops all workers and waits until they are gone. Workers that take long are
// killed, and all are if it is urgent.
func (all *workers) stop(urgent <-chan struct{}) {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	for _, w := range all.running {
		w.expected.Store(true)
		_ = w.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, w := range all.running {
		select {
		case <-w.done:
			continue
		case <-timer.C:
			timer.Reset(0)
		case <-urgent:
		}
		_ = w.cmd.Process.Kill()
		<-w.done
	}
	clear(all.running)
}
