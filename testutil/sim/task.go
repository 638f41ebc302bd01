package sim

import (
	"context"
	"errors"
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
