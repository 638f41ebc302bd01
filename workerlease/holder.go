package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Holder returns the current holder, by the best guess of store time, as far as this worker
// has seen. It doesn't ask the store: a worker reads the ledger once for each slot, shortly before its
// boundary, and with FailoverWithin when a part of the slot ends. So a holder that has died
// or released since is still shown. Once the job of its slot is done, it holds nothing any more. The answer
// is for information only: Lease.Valid says what is safe.
func (w *WorkerLease) Holder() (event.Holder, bool) {
	if !w.started() {
		return event.Holder{}, false
	}
	if s := w.serving.Load(); s != nil && s.held() != nil {
		return s.Holder() // The worker doesn't look while it runs for a trigger.
	}
	now := w.now()
	if !now.Known() {
		return event.Holder{}, false
	}
	w.mu.Lock()
	t := w.terms.at(now.Mid())
	w.mu.Unlock()
	if t.done {
		return event.Holder{}, false
	}
	return t.Holder, t.claim != ""
}

// IsHolder reports that this worker has a lease that is valid now. Without
// Options.Continuous no worker has one for a moment around each boundary.
func (w *WorkerLease) IsHolder() bool { return w.held() != nil }

// held is the lease under which the user's code may work now; nil if there is none.
func (w *WorkerLease) held() *activeLease {
	if w == nil {
		return nil
	}
	h := w.current()
	if h == nil || !h.valid() {
		return nil
	}
	select {
	case <-h.began:
		return h
	default:
		return nil // LeaseAllocated comes first.
	}
}

// term is what one claim began, as far as its records show. The zero term is nobody's.
type term struct {
	event.Holder
	claim   string
	worker  store.Worker // zero: not known
	own     bool
	slotEnd time.Time // up to where its holder may extend it, unseen
	done    bool      // the job of its slot is
}

// goesOn reports that the holder of t goes on with next: the windows meet, or would if it
// has extended its own to the end of the slot, and it is the same worker as far as is known.
// Several workers may have one name, and a claim is new for each slot; but a worker knows its
// own.
func (t term) goesOn(next term) bool {
	known := t.worker != store.Worker{} && next.worker != store.Worker{}
	return t.InstanceID == next.InstanceID && t.Group == next.Group && t.own == next.own &&
		(!known || t.worker.Host == next.worker.Host && t.worker.PID == next.worker.PID) &&
		(next.From.Equal(t.Until) || next.From.Equal(t.slotEnd))
}

// terms are the two newest that a worker knows of: claims are made ahead, so the newest may
// not have begun.
type terms struct{ before, newest term }

// at is the term in force at a time, as far as is known: another worker that has a part of
// its slot is taken to extend that until the ledger is read again.
func (t terms) at(now time.Time) term {
	for _, each := range []term{t.newest, t.before} {
		until := each.Until
		if succeeded := each == t.before && t.newest.From.Before(each.slotEnd); !each.own && !succeeded && each.slotEnd.After(until) {
			until = each.slotEnd
		}
		if !now.Before(each.From) && now.Before(until) {
			return each
		}
	}
	return term{}
}

// observe takes in a record that can be obeyed, and reports whether another worker has
// the lease by it, or nobody: not if the same one goes on, nor if the record is surely
// over. own says that the record's claim is the worker's own.
func (t *terms) observe(r store.Record, own bool, now timeline.Interval) (changed bool) {
	same := r.Claim == t.newest.claim
	switch {
	case r.Kind == store.KindGrant && same:
		t.extend(r, now)
	case r.Kind == store.KindGrant:
		return t.succeed(r, term{Holder: event.Holder{From: r.WindowStart, Claimed: r.FixedAt}, worker: r.Worker, own: own}, now)
	case r.Kind == store.KindRelease:
		return same && t.release(r)
	case same && r.SlotEnd.Equal(r.WindowEnd) && t.release(r): // It was released, unseen.
		return true
	case r.Kind == store.KindOverride:
		return t.override(r.WindowStart)
	case r.Kind == store.KindDone && same:
		if t.newest.done = isDoneIn(r); t.newest.done {
			t.newest.slotEnd = t.newest.Until // Nobody extends a slot that is done.
		}
	case same || r.Claim == "":
	case r.Kind == store.KindOrder && r.SlotEnd.IsZero(): // Nobody had held anything before it.
	case r.Kind == store.KindDone || r.Kind == store.KindOutcome || r.Kind == store.KindOrder:
		// It repeats the term in the head, except for its beginning, which the token shows
		// well enough, and for where its holder runs.
		return t.succeed(r, term{Holder: event.Holder{From: store.FromMillis(r.Token)}, own: own}, now)
	}
	return false
}

// extend takes in a further window of the newest term.
func (t *terms) extend(r store.Record, now timeline.Interval) {
	newest := &t.newest
	newest.Until, newest.slotEnd, newest.Claimed, newest.done = r.WindowEnd, unseenEnd(r, now), r.FixedAt, isDoneIn(r)
}

// release takes in that the newest term has ended with a record, and reports whether that is before its end.
func (t *terms) release(r store.Record) (changed bool) {
	if !r.WindowEnd.Before(t.newest.Until) {
		return false
	}
	t.newest.Until, t.newest.slotEnd = r.WindowEnd, r.WindowEnd
	return true
}

// override takes in that all that was in force has ended at a time, and reports whether
// that was more than is known to be over.
func (t *terms) override(at time.Time) (changed bool) {
	changed = at.Before(t.newest.Until)
	for _, each := range []*term{&t.before, &t.newest} {
		each.Until, each.slotEnd = earlier(each.Until, at), earlier(each.slotEnd, at)
	}
	return changed
}

// succeed takes in another term.
func (t *terms) succeed(r store.Record, next term, now timeline.Interval) (changed bool) {
	next.claim, next.InstanceID, next.Group = r.Claim, r.InstanceID, r.Group
	next.Priority, next.Token, next.Until, next.slotEnd = r.Priority, r.Token, r.WindowEnd, unseenEnd(r, now)
	// The second: a record on top of a reset or an override, which nobody holds anything by.
	next.done = isDoneIn(r)
	if r.Kind != store.KindGrant && (next.done || !next.From.Before(next.Until)) {
		next.slotEnd = next.Until
	}
	changed = !t.newest.goesOn(next) && now.Earliest.Before(next.Until)
	before := t.newest
	before.Until = earlier(before.Until, next.From) // It was released or overridden, unseen.
	*t = terms{before: before, newest: next}
	return changed
}

// unseenEnd is up to where the holder of a record that is read may extend its window, unseen: to the end of its slot or, if
// the run of a job goes on after that, by another window.
func unseenEnd(r store.Record, now timeline.Interval) time.Time {
	if !now.Earliest.Before(r.WindowEnd) {
		return r.WindowEnd // It was not extended.
	}
	if r.Kind == store.KindGrant && r.Attempt > 0 && r.WindowEnd.After(r.SlotEnd) {
		return r.WindowEnd.Add(r.WindowEnd.Sub(r.WindowStart))
	}
	return r.SlotEnd
}

// isDoneIn reports that the job of the slot of a record is done by it.
func isDoneIn(r store.Record) bool {
	return r.Attempt > 0 && machine.IsDoneIn(r, slots.Slot{Start: r.SlotStart, End: r.SlotEnd})
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// observe takes in a record that can be obeyed, and emits HolderChanged if it says so.
func (w *WorkerLease) observe(r store.Record, own bool) {
	now := w.now()
	w.mu.Lock()
	changed, h := w.terms.observe(r, own, now), w.terms.newest.Holder
	w.mu.Unlock()
	if changed {
		w.emit(event.HolderChanged{Worker: w.label(), Holder: h, Released: r.Kind == store.KindRelease || r.Kind == store.KindOverride})
	}
}
