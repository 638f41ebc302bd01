//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"
)

// team is all workers of one peer in one case.
type team struct {
	peer    peer
	service *service
	lease   string
	bound   time.Duration
	events  chan event
	workers map[*worker]bool
	started int
}

// event is what a worker said, or that it ended although nobody told it to.
type event struct {
	from  *worker
	at    time.Time
	ended bool
}

// worker is the process of one, as the benchmark sees it.
type worker struct {
	c      *exec.Cmd
	orders io.Writer
	counts chan int64
	told   atomic.Bool // to stop, or killed
	ended  chan struct{}
	said   bytes.Buffer // to standard error; to be read when it has ended
}

func newTeam(p peer, s *service, r row) *team {
	return &team{
		peer: p, service: s, lease: fmt.Sprintf("%s-%v", r.Case, r.Bound), bound: r.Bound,
		events: make(chan event, 1000), workers: map[*worker]bool{},
	}
}

// start starts a worker.
func (t *team) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t.started++
	w := &worker{counts: make(chan int64, 1), ended: make(chan struct{})}
	w.c = exec.Command(self, "work", "-peer", t.peer.name(), "-address", t.service.address, "-lease", t.lease,
		"-id", fmt.Sprintf("worker-%d", t.started), "-bound", t.bound.String())
	w.c.Stderr = &w.said
	if w.orders, err = w.c.StdinPipe(); err != nil {
		return err
	}
	out, err := w.c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.c.Start(); err != nil {
		return err
	}
	t.workers[w] = true
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				w.counts <- n
			} else if !w.told.Load() {
				t.events <- event{from: w, at: time.Now()}
			}
		}
		_ = w.c.Wait()
		close(w.ended)
		if !w.told.Load() {
			t.events <- event{from: w, ended: true}
		}
	}()
	return nil
}

// kill kills a worker as the kernel does when there is no memory left.
func (t *team) kill(w *worker) {
	delete(t.workers, w)
	w.told.Store(true)
	_ = w.c.Process.Kill()
}

// stop tells a worker to hand over, and doesn't wait for it.
func (t *team) stop(w *worker) {
	delete(t.workers, w)
	w.told.Store(true)
	_, _ = fmt.Fprintln(w.orders, stopNow)
}

// close ends all workers that are left.
func (t *team) close() {
	for w := range t.workers {
		t.kill(w)
		<-w.ended
	}
}

// errQuiet is of workers of which none begins to work.
var errQuiet = errors.New("nobody began to work")

// next waits for the next worker that begins to work.
func (t *team) next(ctx context.Context, limit time.Duration) (event, error) {
	select {
	case e := <-t.events:
		if e.ended {
			return e, fmt.Errorf("a worker ended: %s", bytes.TrimSpace(e.from.said.Bytes()))
		}
		return e, nil
	case <-time.After(limit):
		return event{}, fmt.Errorf("%w within %v", errQuiet, limit)
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

// operations is how many operations of the store there were.
func (t *team) operations(ctx context.Context) (int64, error) {
	if t.service.operations != nil {
		return t.service.operations(ctx)
	}
	var sum int64
	for w := range t.workers {
		_, _ = fmt.Fprintln(w.orders, sayCount)
		select {
		case n := <-w.counts:
			sum += n
		case <-time.After(5 * time.Second):
			return 0, fmt.Errorf("a worker doesn't say its count: %w", context.DeadlineExceeded)
		}
	}
	return sum, nil
}

// wait waits for a time.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
