// Package gather joins calls that are made at the same time into batches, for stores that
// answer many of them in one request.
package gather

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Calls gathers calls. A call is made at once, by itself, while fewer batches are under way than
// there are lanes. Else it waits for the next batch, which has all that waited, up to a size. So a
// lone call waits for nobody, and no call waits for others to come. It is safe for concurrent use.
type Calls[Q, A any] struct {
	lanes, size int
	do          func(ctx context.Context, batch []Q) []A

	mu       sync.Mutex
	underWay int
	waiting  []*call[Q, A]
}

// New returns a gatherer with so many lanes, for batches of at most a size. do makes a batch of
// calls, and returns the answer to each, in their order. Its context ends when those of all calls
// have, and has the values of the first one's. do must return soon after that: it occupies a lane.
func New[Q, A any](lanes, size int, do func(ctx context.Context, batch []Q) []A) *Calls[Q, A] {
	return &Calls[Q, A]{lanes: lanes, size: size, do: do}
}

// call is one that waits, or is part of a batch.
type call[Q, A any] struct {
	ctx    context.Context
	q      Q
	answer chan A // has room for one
	of     *batch // nil: it waits
}

// batch is what calls share that were passed on together.
type batch struct {
	left   int // the calls whose contexts have not ended
	cancel context.CancelCauseFunc
}

// Call makes a call. If ctx ends before the answer is there, answered is false, and made says
// whether the call had been passed on to do by then.
func (c *Calls[Q, A]) Call(ctx context.Context, q Q) (answer A, made, answered bool) {
	c.mu.Lock()
	if c.underWay < c.lanes {
		c.underWay++
		c.mu.Unlock()
		defer c.next() // Deferred, since do may end its goroutine.
		return c.do(ctx, []Q{q})[0], true, true
	}
	own := &call[Q, A]{ctx: ctx, q: q, answer: make(chan A, 1)}
	c.waiting = append(c.waiting, own)
	c.mu.Unlock()
	select {
	case answer = <-own.answer:
		return answer, true, true
	case <-ctx.Done():
		return c.leave(own)
	}
}

// Waiting is the number of calls that wait for a batch. It is for tests.
func (c *Calls[Q, A]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// leave takes a call back whose context has ended.
func (c *Calls[Q, A]) leave(own *call[Q, A]) (answer A, made, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.of == nil {
		i := slices.Index(c.waiting, own)
		c.waiting = slices.Delete(c.waiting, i, i+1)
		return answer, false, false
	}
	select {
	case answer = <-own.answer:
		return answer, true, true
	default:
	}
	if own.of.left--; own.of.left == 0 {
		own.of.cancel(context.Cause(own.ctx)) // What do answers to this is too late, however fast it is.
	}
	return answer, true, false
}

// next gives a lane to those that wait, or gives it back.
func (c *Calls[Q, A]) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.underWay--
		c.waiting = nil // A burst that is over keeps no memory.
		return
	}
	n := min(len(c.waiting), c.size)
	calls := slices.Clone(c.waiting[:n])
	clear(c.waiting[:n])
	c.waiting = c.waiting[n:]
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(calls[0].ctx))
	of := &batch{left: n, cancel: cancel}
	for _, m := range calls {
		m.of = of
	}
	go c.make(until(ctx, calls), calls)
}

// make makes a batch of calls.
func (c *Calls[Q, A]) make(ctx context.Context, calls []*call[Q, A]) {
	defer c.next()
	defer calls[0].of.cancel(nil)
	questions := make([]Q, len(calls))
	for i, m := range calls {
		questions[i] = m.q
	}
	for i, answer := range c.do(ctx, questions) {
		calls[i].answer <- answer
	}
}

// until gives a context the latest deadline of calls, if each has one.
func until[Q, A any](ctx context.Context, calls []*call[Q, A]) context.Context {
	d := dated{Context: ctx}
	for _, m := range calls {
		deadline, ok := m.ctx.Deadline()
		if !ok {
			return ctx
		}
		if deadline.After(d.deadline) {
			d.deadline = deadline
		}
	}
	return d
}

// dated is a context with a deadline for those that it is passed on to. It doesn't end by it: the
// contexts that it is of do.
type dated struct {
	context.Context
	deadline time.Time
}

func (d dated) Deadline() (time.Time, bool) { return d.deadline, true }
