package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// errTask is what this package's own task fails with.
var errTask = errors.New("sim: the task fails")

// DefaultTask is a task as users write it. It works in pieces, and then is done, fails,
// panics, goes on until its context ends, or returns late. Use it as Options.Task.
func DefaultTask(p *Process) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		w := p.world
		r := newRand(w.o.Seed, forWork, p.number, l.Token)
		pieces := 1 + r.below(6)
		end := r.float()
		for range pieces {
			timer := time.NewTimer(p.clock.wait(r.span(l.Slot.Length()/100, l.Slot.Length()/3), userLane))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				if end < 0.2 {
					p.clock.Sleep(r.span(time.Millisecond, l.Slot.Length()))
					return nil // It was about to be done.
				}
				return context.Cause(ctx)
			}
			if l.Valid() {
				p.Work(l)
			}
		}
		switch {
		case end < 0.1:
			return errTask
		case end < 0.15 && !p.Dead():
			w.tally.strike(Panicked)
			panic(onPurpose)
		}
		return nil
	}
}

// guardedTask wraps the user's task in checks.
func (p *Process) guardedTask(task workerlease.Task) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		if p.dead.Load() {
			return errDead
		}
		w := p.world
		x := p.resumes(l)
		if x == nil {
			x = p.begins(ctx, l)
		}
		w.called(p, l, x)
		context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended(x)
			x.Why = whyOf(context.Cause(ctx))
			p.endTask(x)
			w.auditEnd(x)
			x.left = true
		})
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.endTask(x)
			x.returned, x.finished = true, true
			x.overAt = w.now()
			p.mustRelease(x)
			p.tracef("the task of %d returns", l.Token)
		}()
		defer p.panicked("the task", l.Token)
		return task(ctx, l)
	}
}

// called notes a call of a task.
func (w *world) called(p *Process, l workerlease.Lease, x *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.auditCall(p, l, x.grant)
}

// resumes finds the lease under which the task has returned for an earlier slot: it had been
// missed, or the lease goes on.
func (p *Process) resumes(l workerlease.Lease) *Lease {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	x := p.leases[l.Token]
	if x == nil || !x.over() || x.left || x.Slot.End.After(l.Slot.Start) {
		return nil
	}
	p.tracef("the task of %d goes on, for its own slot", l.Token)
	w.auditBegin(x)
	x.Slot, x.Expiries, x.returned, x.finished = l.Slot, 0, false, false
	r := w.resource(x.WorkerType)
	r.live = append(r.live, x)
	return x
}

// endTask notes that a task has returned, or that its context has ended. The caller holds the
// mutex.
func (p *Process) endTask(x *Lease) {
	if x.Expiries > 0 || p.dead.Load() {
		return
	}
	x.extend()
	x.Expiries, x.Ended = 1, p.world.now()
	p.world.leave(x)
}

// manner is the way in which simulated code works.
type manner int

const (
	blocks  manner = iota // works in LeaseAllocated until its context ends
	starts                // starts the work and returns, and stops it in LeaseExpired
	hurries               // returns early
	panics                // panics in the middle of its work
	ignores               // stays in LeaseAllocated past the end, though without working
)

// DefaultCallbacks is the code of a worker as users write it, in all manners. It is the
// default of Options.Callbacks.
func DefaultCallbacks(p *Process) workerlease.Callbacks {
	c := &coder{p: p}
	return workerlease.Callbacks{LeaseAllocated: c.allocated, LeaseExpired: c.expired}
}

type coder struct {
	p *Process

	mu   sync.Mutex
	done chan struct{} // closed when the work that was started has stopped
}

// turn sets what LeaseExpired waits for, and returns the previous one.
func (c *coder) turn(done chan struct{}) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.done
	c.done = done
	return was
}

func (c *coder) allocated(ctx context.Context, l workerlease.Lease) {
	p := c.p
	w := p.world
	r := newRand(w.o.Seed, forWork, p.number, l.Token)
	manner := blocks
	switch u := r.float(); {
	case less(&u, w.o.Faults.Panicked):
		manner = panics
	case less(&u, w.o.Faults.Blocked):
		manner = ignores
	case less(&u, 0.2):
		manner = starts
	case less(&u, 0.1):
		manner = hurries
	}
	switch manner {
	case starts:
		done := make(chan struct{})
		c.turn(done)
		go func() {
			defer close(done)
			c.work(ctx, l, &r, -1)
		}()
	case hurries:
		c.work(ctx, l, &r, r.below(5))
	case panics:
		c.work(ctx, l, &r, r.below(5))
		if !p.Dead() {
			w.tally.strike(Panicked)
			panic(onPurpose)
		}
	case ignores:
		c.work(ctx, l, &r, -1)
		w.tally.strike(Blocked)
		p.clock.Sleep(r.span(time.Millisecond, 2*l.Slot.Length()))
	default:
		c.work(ctx, l, &r, -1)
	}
}

func (c *coder) expired(workerlease.Lease, workerlease.Reason) {
	if done := c.turn(nil); done != nil {
		<-done
	}
}

// work works in small pieces, and asks before each whether it still may. It does the given
// number of pieces, or goes on until the context ends.
func (c *coder) work(ctx context.Context, l workerlease.Lease, r *rand, pieces int) {
	p := c.p
	long, pace := l.Expiry.Sub(l.Start), p.pace(l)
	for ; pieces != 0; pieces-- {
		timer := time.NewTimer(p.clock.wait(pace.wait(l, r.span(long/20, long)), userLane))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			c.ends(ctx, l, r)
			return
		}
		if l.Valid() {
			p.Work(l)
		}
	}
}

// ends ends the work when the context has ended: at once, unless there is time to tidy up.
func (c *coder) ends(ctx context.Context, l workerlease.Lease, r *rand) {
	p := c.p
	w := p.world
	long := r.span(time.Millisecond, 20*time.Second)
	unknown := len(p.host.stalls) > 0 || w.o.Faults.Jumps > 0 // how much time is left
	if !errors.Is(context.Cause(ctx), workerlease.ErrStopped) || unknown || w.now()+long+time.Second+p.margin >= w.time(l.Expiry) {
		return
	}
	// Leasing was stopped: nothing may be released before this returns.
	p.clock.Sleep(long)
	p.Work(l)
}
