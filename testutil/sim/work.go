package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

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
