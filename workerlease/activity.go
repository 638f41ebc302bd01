package workerlease

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// activity counts what a client's workers are doing, so that a test with a fake
// clock can know when all that had to happen at a moment has happened.
type activity struct {
	mu      sync.Mutex
	workers map[*WorkerLease]*doing
	roster  *doing // by the goroutine that keeps the roster; nil: there is none
	changed chan struct{}
}

// doing is what goes on for one worker. It is forgotten when the worker leaves.
type doing struct {
	until time.Time // what the worker waits for; zero: it doesn't wait
	busy  int       // operations, events on their way, user code that is expected to return
}

func (a *activity) join(w *WorkerLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.workers == nil {
		a.workers = map[*WorkerLease]*doing{}
	}
	a.workers[w] = &doing{}
}

func (a *activity) leave(w *WorkerLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.workers, w)
	a.wakeLocked()
}

// park notes that a worker waits for a time of the client's clock, or is busy
// again (the zero time).
func (a *activity) park(w *WorkerLease, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d := a.workers[w]; d != nil {
		d.until = until
	}
	a.wakeLocked()
}

// add counts things under way for a worker.
func (a *activity) add(w *WorkerLease, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d := a.workers[w]; d != nil {
		d.busy += n
	}
	a.wakeLocked()
}

// parkRoster is park for the goroutine that keeps the roster.
func (a *activity) parkRoster(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roster = &doing{until: until}
	a.wakeLocked()
}

// leaveRoster notes that no goroutine keeps the roster any more.
func (a *activity) leaveRoster() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roster = nil
	a.wakeLocked()
}

// list is a copy.
func (a *activity) list() []*WorkerLease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.workers))
}

func (a *activity) wakeLocked() {
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// quiet reports whether nothing happens before next (zero: never).
func (a *activity) quiet(now time.Time) (next time.Time, ok bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ok = true
	look := func(d *doing) {
		ok = ok && d.busy == 0 && d.until.After(now)
		if next.IsZero() || d.until.Before(next) {
			next = d.until
		}
	}
	for _, d := range a.workers {
		look(d)
	}
	if a.roster != nil {
		look(a.roster)
	}
	if !ok && a.changed == nil {
		a.changed = make(chan struct{})
	}
	return next, ok, a.changed
}

// Settle waits until nothing more happens before the client's clock moves on. It returns
// the earliest time, by that clock, that a worker waits for; zero if there is no worker. It
// is for tests with a fake clock: testutil/clocks uses it.
//
// When it returns, all ledger operations that were due have come back. LeaseAllocated has
// been called where it was due, and has returned or has asked for its context's Done
// channel. Where a lease ended, both callbacks have returned. Settle waits for user code
// that does neither until ctx ends, and returns its cause.
func (c *Client) Settle(ctx context.Context) (next time.Time, err error) {
	for c.made() {
		next, ok, changed := c.activity.quiet(c.clock.Now())
		if ok {
			return next, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return next, context.Cause(ctx)
		}
	}
	return time.Time{}, nil
}

// watched is the context of a lease. It notices when the code that got it begins
// to wait for its end.
type watched struct {
	context.Context
	once    sync.Once
	waiting func()
}

func (c *watched) Done() <-chan struct{} {
	c.once.Do(c.waiting)
	return c.Context.Done()
}
