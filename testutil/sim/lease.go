package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// Lease is one lease as the world saw it. Durations are true time, from the
// beginning of the run.
type Lease struct {
	Worker, Life int
	WorkerType   string
	Group        string
	Slot         slots.Slot
	Token        int64
	Start, End   time.Duration // of the window
	Began        time.Duration // when LeaseAllocated was called
	Worked       time.Duration // when it last worked
	Ended        time.Duration // when LeaseExpired was called, or the process crashed
	Why          workerlease.Reason
	Expiries     int // calls of LeaseExpired
	Crashed      bool

	p        *Process
	lease    workerlease.Lease
	returned bool
	finished bool // LeaseExpired has returned
	order    int  // of its grant in the ledger
}

// String is one line for a person.
func (l *Lease) String() string {
	return fmt.Sprintf("w%d.%d%s token %d window %v…%v began %v worked %v ended %v %s",
		l.Worker, l.Life, l.Group, l.Token, l.Start, l.End, l.Began, l.Worked, l.Ended, l.Why)
}

// over reports that the user's code has returned.
func (l *Lease) over() bool { return l.returned && l.finished }

// shares reports that both may work at once: they hold one tenure together.
func (l *Lease) shares(o *Lease) bool {
	return l.Token == o.Token && l.Group == o.Group && l.Group != ""
}

// resource is what the leases of a worker type protect: it knows who works now,
// and is fenced.
type resource struct {
	live   []*Lease // whose code has not been told to stop, or has not returned
	newest *Lease   // the newest tenure that has worked
	fence  int64    // the highest token that wrote
	owner  string   // who wrote with it
	order  int      // of the tenure that wrote last, in the ledger

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

// Overlap is two holders at work at once. It can only happen beyond what the
// protocol assumes.
type Overlap struct {
	At           time.Duration
	Older, Newer string
	// Reported says that one of the two told, near it in time, that the store's
	// clock had jumped or that its record had vanished.
	Reported bool
	// Deaf says that one of the two never had an answer from the store again by which
	// it could have known.
	Deaf bool

	older, newer *Lease
}

// guarded wraps the user's callbacks in checks.
func (p *Process) guarded(cb workerlease.Callbacks) workerlease.Callbacks {
	inner := cb
	cb.LeaseAllocated = func(ctx context.Context, l workerlease.Lease) {
		if p.dead.Load() {
			return
		}
		x := p.begins(ctx, l)
		context.AfterFunc(ctx, func() {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			p.world.told(x)
		})
		defer func() {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			x.returned = true
			p.tracef("LeaseAllocated of %d returns", l.Token)
		}()
		inner.LeaseAllocated(ctx, l)
	}
	cb.LeaseExpired = func(l workerlease.Lease, why workerlease.Reason) {
		x := p.expires(l, why)
		if inner.LeaseExpired != nil {
			inner.LeaseExpired(l, why)
		}
		if x != nil {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			x.finished = true
		}
	}
	return cb
}

// begins notes that LeaseAllocated is called.
func (p *Process) begins(ctx context.Context, l workerlease.Lease) *Lease {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.now()
	x := &Lease{
		Worker: p.Worker, Life: p.Life, WorkerType: l.WorkerType, Group: l.Group, Slot: l.Slot, Token: l.Token,
		Start: w.time(l.Start), End: w.time(l.Expiry), Began: at, Worked: at, p: p, lease: l,
	}
	p.tracef("LeaseAllocated of %d", l.Token)
	if l.Group != "" {
		w.tally.strike(InGroup)
	}
	if d := w.hosts[0].options.LeaseInterval; p.options.LeaseInterval != d {
		w.tally.strike(LongWindow)
	}
	if p.lease != nil && (!p.lease.over() || p.lease.Expiries != 1) {
		w.violate("%v is allocated, and the code of %v has not returned", x, p.lease)
	}
	if p.leases[l.Token] != nil && !w.beyond {
		w.violate("%v is allocated twice", x)
	}
	if ctx.Err() != nil && !w.beyond {
		w.violate("%v is allocated with a context that has ended", x)
	}
	if grant, ok := w.grantOf(l); ok {
		x.order = grant.order
	} else if !w.beyond {
		w.violate("%v is worked under, and no such grant was first at its key", x)
	}
	p.lease, p.leases[l.Token] = x, x
	w.leases = append(w.leases, x)
	r := w.resource(l.WorkerType)
	for _, other := range r.live {
		if other != x && !other.shares(x) && other.lease.Valid() {
			w.overlap(other, x)
		}
	}
	r.live = append(r.live, x)
	w.work(x)
	return x
}

// grantOf finds the record behind a lease.
func (w *world) grantOf(l workerlease.Lease) (landed, bool) {
	// The newest, should an earlier one with the same token have been rolled back.
	for _, g := range slices.Backward(w.ledger(l.WorkerType).byToken[l.Token]) {
		if g.group == l.Group && (l.Group != "" || g.instance == l.InstanceID) {
			return g, true
		}
	}
	return landed{}, false
}

// overlap notes that two work at once.
func (w *world) overlap(older, newer *Lease) {
	if !w.beyond {
		w.violate("%v works, and %v has not ended", newer, older)
		return
	}
	w.overlaps = append(w.overlaps, &Overlap{At: w.now(), Older: older.String(), Newer: newer.String(), older: older, newer: newer})
}

// Work notes that simulated code does, at this very instant, what only the
// holder of a lease may do: it must have asked Lease.Valid right before, or know
// by its context. The world checks that nobody with a newer lease has worked,
// and writes to a fenced resource in its name.
func (p *Process) Work(l workerlease.Lease) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch x := p.leases[l.Token]; {
	case p.dead.Load():
	case x == nil:
		w.violate("%v works under token %d, which it never had", p, l.Token)
	default:
		w.work(x)
	}
}

func (w *world) work(x *Lease) {
	at := w.now()
	x.Worked = at
	r := w.resource(x.WorkerType)
	if !w.beyond {
		switch {
		case at < x.Start:
			w.violate("%v works before its window", x)
		case at+x.p.margin >= x.End:
			w.violate("%v works later than %v before the end of its window", x, x.p.margin)
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
	roll := cast(w.o.Seed, forWork, x.p.number, int64(at))
	if roll.chance(0.25) {
		// Some writes take a while to arrive, so that stale ones come, too.
		w.later(x.p.slot(at+roll.span(time.Microsecond, time.Minute), userLane)-at, func() {
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

// write is a write to the fenced resource: it refuses a token below the highest,
// and the highest from anybody else.
func (r *resource) write(w *world, x *Lease) {
	owner := x.Group
	if owner == "" {
		owner = x.p.String()
	}
	if x.Token < r.fence || x.Token == r.fence && owner != r.owner {
		r.refused++
		return
	}
	if x.order != unordered && x.order < r.order {
		r.stale++
		w.violate("the fenced resource accepted a write of %v, after one of a later tenure", x)
	}
	r.fence, r.owner, r.order = x.Token, owner, max(r.order, x.order)
}

// expires notes that LeaseExpired is called.
func (p *Process) expires(l workerlease.Lease, why workerlease.Reason) *Lease {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	x := p.leases[l.Token]
	if p.dead.Load() {
		return x
	}
	if x == nil {
		w.violate("%v: LeaseExpired is called for token %d, and LeaseAllocated was not", p, l.Token)
		return nil
	}
	p.tracef("LeaseExpired of %d: %s", l.Token, why)
	x.Expiries++
	x.Why, x.Ended = why, w.now()
	if x.Expiries > 1 {
		w.violate("LeaseExpired is called again for %v", x)
	}
	if l.Valid() {
		w.violate("LeaseExpired is called for %v, which is valid", x)
	}
	w.leave(x)
	return x
}

// told notes that the code under a lease was told to stop: in time, unless the
// process did not run. After a suspend it takes a second to notice.
func (w *world) told(x *Lease) {
	if x.p.dead.Load() {
		return
	}
	at, last := w.now(), x.End
	if w.o.Faults.TimerOff > 0 {
		last += timerOff
	}
	if !w.beyond && at >= last && !x.p.host.stalls.justEnded(at, 1100*time.Millisecond+timerOff) {
		w.violate("%v is told to stop after its window", x)
	}
}

// leave notes that code under a lease works no more.
func (w *world) leave(x *Lease) {
	r := w.resource(x.WorkerType)
	r.live = slices.DeleteFunc(r.live, func(l *Lease) bool { return l == x })
}
