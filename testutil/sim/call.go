package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// call is the course of one call.
type call struct {
	far           time.Duration // the part of before and after that every call takes
	before, after time.Duration
	kind          Fault         // what goes wrong at the store, if anything
	lost          bool          // it has no effect
	late          time.Duration // it has its effect this much later
	silent        bool          // no reply comes
	err           error         // the reply in place of the true one
	hidden        int           // how many of the newest records a read lacks
	rollback      bool
	rand          rand
}

// plan draws the course of a call.
func (k *link) plan(appends bool) call {
	w := k.p.world
	f := &w.o.Faults
	r := newRand(w.o.Seed, forCall, k.p.number, k.calls.Add(1))
	c := call{far: k.p.host.far, before: r.upTo(f.Latency)}
	if r.chance(0.5) {
		c.after = r.upTo(f.Latency)
	}
	if r.chance(f.Delayed) {
		w.tally.strike(Delayed)
		c.before += r.span(time.Millisecond, time.Minute)
		if r.chance(0.5) {
			c.before, c.after = c.after, c.before
		}
	}
	c.before += c.far
	c.after += c.far
	switch u := r.float(); {
	case less(&u, f.Failed):
		c.kind, c.lost, c.err = Failed, true, errReset
	case less(&u, f.LostReply):
		c.kind, c.err = LostReply, errReset
	case less(&u, f.BlackHole):
		c.kind, c.lost, c.silent = BlackHole, r.chance(0.5), true
	case less(&u, f.Throttled):
		c.kind, c.lost, c.err = Throttled, true, &store.ThrottledError{RetryAfter: r.span(10*time.Millisecond, 30*time.Second), Err: errReset}
	case !appends && less(&u, f.Stale):
		c.hidden = 1 + r.below(3)
	case appends && less(&u, f.OwnConflict):
		c.kind, c.err = OwnConflict, fmt.Errorf("sim: append: %w", store.ErrConflict)
	case appends && less(&u, f.Late):
		c.late = r.span(time.Millisecond, f.LateBy)
		c.err, c.silent = errReset, r.chance(0.5)
	case appends && less(&u, f.Rollback):
		c.rollback, c.silent = true, true
	}
	c.rand = r
	return c
}

// wrong reports whether a fault strikes a call.
func (c *call) wrong(f *Faults) bool {
	return c.kind != "" || c.lost || c.silent || c.err != nil || c.late > 0 || c.hidden > 0 || c.rollback || max(c.before, c.after)-c.far > f.Latency
}

// longer is the time that a throttled caller is asked to wait.
func (c *call) longer() time.Duration {
	if t, ok := errors.AsType[*store.ThrottledError](c.err); ok {
		return t.RetryAfter
	}
	return 0
}

// less consumes a part of an even draw.
func less(u *float64, p float64) bool {
	*u -= p
	return *u < 0
}
