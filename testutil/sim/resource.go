package sim

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// resource is the thing that the leases of a worker type protect. It knows who works now, and
// is fenced.
type resource struct {
	live   []*Lease // whose code has not been told to stop, or has not returned
	newest *Lease   // the newest term that has worked
	fence  int64    // the highest token that wrote
	owner  string   // who wrote with it
	last   *Lease   // the latest term that wrote

	refused, stale int
}

func (w *world) resource(workerType string) *resource {
	r := w.resources[workerType]
	if r == nil {
		r = &resource{}
		w.resources[workerType] = r
	}
	return r
}

// grantOf finds the record of a lease.
func (w *world) grantOf(l workerlease.Lease) *landed {
	// The newest, should an earlier one with the same token have been rolled back.
	for _, g := range slices.Backward(w.ledger(l.WorkerType).byToken[l.Token]) {
		if g.group == l.Group && (l.Group != "" || g.instance == l.InstanceID) {
			return g
		}
	}
	return nil
}

// Work notes that simulated code does, at this instant, work that only the holder of a lease
// may do. The code must have called Lease.Valid right before, or know by its context. The
// world checks that no holder of a newer lease has worked, and writes to a fenced resource
// in its name.
func (p *Process) Work(l workerlease.Lease) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch x := p.leases[l.Token]; {
	case p.dead.Load():
	case x == nil:
		w.violate("%v works under token %d, which it never had", p, l.Token)
	default:
		w.works++
		if w.o.Trace {
			p.tracef("works under %d", l.Token)
		}
		w.work(x)
	}
}

func (w *world) work(x *Lease) {
	at := w.now()
	x.Worked = at
	r := w.resource(x.WorkerType)
	x.extend()
	if !w.beyond {
		switch {
		case at < x.Start:
			w.violate("%v works before its window has begun", x)
		case at+x.p.margin >= x.End:
			w.violate("%v works %v after the last safe moment of its window: did it go on when its context had ended, or not ask Lease.Valid?", x, shown(at+x.p.margin-x.End))
		}
		if x.p.freed[x.Token] {
			w.violate("%v works after its release was sent", x)
		}
	}
	switch old := r.newest; {
	case old == nil || old == x || old.shares(x):
	case x.Token > old.Token:
	case x.Token == old.Token:
		w.violateWithin("%v has the token of %v", x, old)
	case x.Began > old.Began:
		w.violateWithin("%v has a token below that of %v", x, old)
	default:
		w.overlap(x, old)
	}
	if r.newest == nil || x.Token >= r.newest.Token {
		r.newest = x
	}
	roll := newRand(w.o.Seed, forWork, x.p.number, int64(at))
	if roll.chance(0.25) {
		// Some writes take a while to arrive, so that stale ones come, too.
		w.later(x.p, writeLane, roll.span(time.Microsecond, time.Minute), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			r.write(w, x)
		})
		return
	}
	r.write(w, x)
}

// violateWithin is violate, unless the assumptions are broken.
func (w *world) violateWithin(format string, args ...any) {
	if !w.beyond {
		w.violate(format, args...)
	}
}

// earlier reports whether a term came before another: by its window or, if both windows begin at
// once, by the order of landing. (After a rollback, the first to land may be for a later slot.)
func (l *Lease) earlier(o *Lease) bool {
	switch {
	case l.shares(o):
		return false
	case l.Start != o.Start:
		return l.Start < o.Start
	}
	return l.order != unordered && o.order != unordered && l.order < o.order
}

// write is a write to the fenced resource. It refuses a token below the highest, and the highest
// from another owner.
func (r *resource) write(w *world, x *Lease) {
	owner := x.Group
	if owner == "" {
		owner = x.p.String()
	}
	if x.Token < r.fence || x.Token == r.fence && owner != r.owner {
		r.refused++
		return
	}
	if r.last != nil && x.earlier(r.last) {
		r.stale++
		w.violate("the fenced resource accepted a write of %v, after one of a later term", x)
	}
	r.fence, r.owner = x.Token, owner
	if r.last == nil || r.last.earlier(x) {
		r.last = x
	}
}

// leave notes that the code under a lease has stopped working.
func (w *world) leave(x *Lease) {
	r := w.resource(x.WorkerType)
	r.live = slices.DeleteFunc(r.live, func(l *Lease) bool { return l == x })
}
