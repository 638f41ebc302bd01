package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// sent checks and notes an append on its way.
func (p *Process) sent(r store.Record) {
	w := p.world
	if r.WorkerType != p.options.WorkerType {
		return // User code leases other types as well.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(r.Seq, r.Kind, r.Claim)
	again := p.asked == key || p.sends[key]
	if w.o.Triggers > 0 {
		p.sends[key] = true // The process may also append for a run that was asked for, and sends either again when it has done the other.
	}
	if !again && !p.dead.Load() && !w.beyond && r.ReadAt.Sub(w.origin) < time.Duration(p.readAt.Load()) {
		w.violate("%v says in seq %d that it read the ledger by %v, and it did at %v", p, r.Seq, w.time(r.ReadAt), time.Duration(p.readAt.Load()))
	}
	p.asked, p.askedAs = key, r.Seq
	if p.dead.Load() {
		return
	}
	switch r.Kind {
	case store.KindRelease:
		p.freed[r.Token] = true
		if l := p.leases[r.Token]; l != nil && !l.over() {
			w.violate("%v releases seq %d while its code runs", p, r.Seq-1)
		}
	case store.KindGrant:
		p.claimsFit(r, again)
		w.auditTurn(p, r)
		if !again {
			w.auditNews(p, r)
		}
		if l := p.leases[r.Token]; l != nil && l.lease.Start.Before(r.WindowStart) {
			switch {
			case p.freed[r.Token]:
				w.violate("%v extends in seq %d what it has released: %v", p, r.Seq, l)
			case l.left && l.Ended < w.now():
				w.violate("%v extends in seq %d what has ended: %v", p, r.Seq, l)
			}
		}
		if old := p.lease; old != nil && old.Expiries > 0 && old.Ended < w.now() && !old.over() {
			w.violate("%v claims in seq %d, and its code runs on after the end of %v", p, r.Seq, old)
		}
		if age := w.now() - time.Duration(p.askedAt.Load()); age > fresh && !w.beyond {
			w.violate("%v claims in seq %d, and has not heard of the time for %v", p, r.Seq, age)
		}
	default:
	}
}

// observe notes an event of the engine, and is slow at times.
func (p *Process) observe(e event.Event) {
	w := p.world
	if p.dead.Load() {
		return
	}
	switch e := e.(type) {
	case event.Started, event.Operated, event.TaskSucceeded, event.Faltered, event.Returned:
		return // They come with another event or call, which is noted.
	case event.Missed:
		w.count(&w.missed)
	case event.Lost:
		if e.Inversion {
			w.count(&w.inversions)
		}
	case event.ClockJump:
		if e.Verdict == event.ClockInQuestion {
			w.alarm(p, Jump)
		}
	case event.Expired:
		if e.Why == workerlease.Stopped {
			p.leaving.Store(true)
		}
	case event.Overrun: // The code may also be LeaseExtended, or run by RunIfHeld.
		p.overruns.Store(true)
	case event.Claimed, event.Allocated:
		p.overruns.Store(false)
	case event.SteppedBack:
		p.back.Store(int64(w.time(e.Until)))
	case event.StoreFailed:
		p.fails(e.Err)
	case event.Unknown:
		p.fails(e.Err)
	case event.Throttled:
		p.health.ail(w.now() + e.RetryAfter)
	case event.Vanished, event.Poison, event.WentBack:
		// Where the world plants no poison, the record below it is gone, or isn't the one that
		// its writer has read.
		w.alarm(p, Rollback)
	}
	at := w.now()
	if f := w.o.Faults.SlowObserver; f > 0 {
		r := newRand(w.o.Seed, forTimer, p.number, int64(at)<<4|int64(observerLane))
		if r.chance(f) {
			w.tally.strike(SlowObserver)
			// Not in a pause of the process, in the middle of which it would go on.
			due := p.host.fires(at, r.span(time.Millisecond, 10*time.Second))
			p.keeps(at, due)
			p.health.ail(due + time.Millisecond)
			time.Sleep(p.slot(due+1, observerLane) - at)
		}
	}
	if w.o.Trace {
		p.tracef("%T", e)
	}
}

// fails notes a failed call, except in an outage. The world may not know of the failure, because
// a wrapper of the ledger may fail, too.
func (p *Process) fails(err error) {
	if !errors.Is(err, errRefused) {
		p.health.ail(p.world.now())
	}
}

// fresh bounds the age of the newest sample of store time when a worker claims, with a little
// more for the drift of the clock that measures it.
const fresh = 2*time.Minute + time.Second

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}
