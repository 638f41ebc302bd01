package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// Lease is one lease as the world saw it. Durations are true time from the beginning of the
// run.
type Lease struct {
	Worker, Life int
	WorkerType   string
	Group        string
	Slot         slots.Slot
	Token        int64
	Start, End   time.Duration // of the window, with its extensions
	Began        time.Duration // when LeaseAllocated was called
	Worked       time.Duration // when it last worked
	Ended        time.Duration // when LeaseExpired was called, or the process crashed
	Why          workerlease.Reason
	Extensions   int // calls of LeaseExtended
	Expiries     int // calls of LeaseExpired
	Crashed      bool

	p        *Process
	lease    workerlease.Lease
	returned bool
	finished bool          // LeaseExpired has returned
	left     bool          // the engine has ended the lease
	told     time.Duration // the end that the user's code knows
	overAt   time.Duration // when all of it had returned
	grant    *landed
	order    int // of its grant in the ledger
}

// extend takes notice of a record that extends the lease.
func (l *Lease) extend() {
	if l.grant != nil {
		l.End = max(l.End, l.p.world.time(l.grant.end))
	}
}

// String describes the lease in one line.
func (l *Lease) String() string {
	text := fmt.Sprintf("w%d.%d%s (token %d, window %v…%v, began %v, last worked %v",
		l.Worker, l.Life, l.Group, l.Token, l.Start, l.End, shown(l.Began), shown(l.Worked))
	switch {
	case l.Crashed:
		text += fmt.Sprintf(", crashed %v", shown(l.Ended))
	case l.Expiries > 0:
		text += fmt.Sprintf(", ended %v: %s", shown(l.Ended), l.Why)
	}
	return text + ")"
}

// over reports that the user's code has returned.
func (l *Lease) over() bool { return l.returned && l.finished }

// shares reports that both may work at once: they hold one term together.
func (l *Lease) shares(o *Lease) bool {
	return l.Token == o.Token && l.Group == o.Group && l.Group != ""
}

// guarded wraps the user's callbacks in checks.
func (p *Process) guarded(cb workerlease.Callbacks) workerlease.Callbacks {
	inner := cb
	cb.LeaseAllocated = func(ctx context.Context, l workerlease.Lease) {
		if p.dead.Load() {
			return
		}
		// The run waits for this code, even if a broken engine doesn't.
		p.world.lives.Add(1)
		defer p.world.lives.Done()
		x := p.begins(ctx, l)
		p.doom()
		context.AfterFunc(ctx, func() {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			p.world.ended(x)
		})
		defer func() {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			x.returned = true
			p.tracef("LeaseAllocated of %d returns", l.Token)
			p.leaves(x)
		}()
		defer p.panicked("LeaseAllocated", l.Token)
		inner.LeaseAllocated(ctx, l)
	}
	cb.LeaseExtended = func(l workerlease.Lease) {
		p.extended(l)
		if inner.LeaseExtended != nil {
			defer p.panicked("LeaseExtended", l.Token)
			inner.LeaseExtended(l)
		}
	}
	cb.LeaseExpired = func(l workerlease.Lease, why workerlease.Reason) {
		p.world.lives.Add(1)
		defer p.world.lives.Done()
		x := p.expires(l, why)
		defer func() {
			p.world.mu.Lock()
			defer p.world.mu.Unlock()
			if x != nil {
				x.finished = true
				p.leaves(x)
			}
		}()
		if inner.LeaseExpired != nil {
			defer p.panicked("LeaseExpired", l.Token)
			inner.LeaseExpired(l, why)
		}
	}
	return cb
}

// onPurpose is what this package's own code panics with.
const onPurpose = "sim: a callback panics, as Faults.Panicked says"

// panicked is deferred around user code. The engine recovers from a panic, so only this
// shows it to a test.
func (p *Process) panicked(callback string, token int64) {
	v := recover()
	if v == nil {
		return
	}
	if v != onPurpose && !p.dead.Load() {
		p.world.violate("%v: %s for token %d panicked: %v\n%s", p, callback, token, v, debug.Stack())
	}
	panic(v)
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
	w.auditEntry(p, l)
	if p.leases[l.Token] != nil && !w.beyond {
		w.violate("%v is allocated twice", x)
	}
	if ctx.Err() != nil && !w.beyond {
		w.violate("%v is allocated with a context that has ended", x)
	}
	if x.grant = w.grantOf(l); x.grant != nil {
		x.order = x.grant.order
	} else if !w.beyond {
		w.violate("%v is worked under, and no such grant was first at its key", x)
	}
	p.heedsIllness("begins to work")
	w.auditBegin(x)
	p.lease, p.leases[l.Token] = x, x
	w.leases = append(w.leases, x)
	r := w.resource(l.WorkerType)
	for _, other := range r.live {
		if other != x && !other.shares(x) && other.lease.Valid() {
			w.overlap(other, x)
		}
	}
	r.live = append(r.live, x)
	x.told = x.End
	w.work(x)
	return x
}

// extended notes that LeaseExtended is called.
func (p *Process) extended(l workerlease.Lease) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead.Load() {
		return
	}
	x := p.leases[l.Token]
	if x == nil {
		w.violate("%v: LeaseExtended is called for token %d, and LeaseAllocated was not", p, l.Token)
		return
	}
	p.tracef("LeaseExtended of %d: to %v", l.Token, w.time(l.Expiry))
	x.extend()
	x.Extensions++
	if end := w.time(l.Expiry); !w.beyond && (end <= x.told || end > x.End) {
		w.violate("%v is extended to %v, after %v, and the ledger says %v", x, end, x.told, x.End)
	}
	x.told = w.time(l.Expiry)
	if x.Expiries > 0 && x.Ended < w.now() {
		w.violate("LeaseExtended is called for %v, which has ended", x)
	}
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
	x.extend()
	x.Expiries++
	x.left = true
	x.Why, x.Ended = why, w.now()
	if x.Expiries > 1 {
		w.violate("LeaseExpired is called again for %v", x)
	}
	if l.Valid() {
		w.violate("LeaseExpired is called for %v, which is valid", x)
	}
	w.auditEnd(x)
	w.leave(x)
	return x
}

// ended notes that the context of the code under a lease has ended: in time, unless the
// process did not run. After a suspend it takes a second to notice.
func (w *world) ended(x *Lease) {
	if x.p.dead.Load() {
		return
	}
	x.extend()
	at, last := w.now(), x.End
	if w.o.Faults.TimerOff > 0 {
		last += timerOff
	}
	if !w.beyond && at >= last && !x.p.host.stalls.justEnded(at, 1100*time.Millisecond+timerOff) {
		w.violate("%v is told to stop after its window only", x)
	}
}
