package machine

import (
	"cmp"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// This file is which slot's work a claim is for. A slot that nobody has begun in time may be run late: within
// a slot of the present, by a grant that names the slot whose work it is. What the head carries is enough to
// know which that is, so a worker without any memory decides the same as all others.

// work is the slot whose work a window from start on, within the bid's slot, is for: a missed one or the
// bid's own; zero if none may begin. Slots before the one that was attempted last are given up.
func (f facts) work(start time.Time) slots.Slot {
	own, c := f.s.Bid.Slot, &f.s.View.Carried
	if own.IsZero() || !f.m.Once {
		return own
	}
	if !f.m.Trigger.IsZero() {
		if !f.mayServe(start) {
			return slots.Slot{}
		}
		return own
	}
	newest, rest := f.m.Schedule.At(own.Start.Add(-1)), own
	if f.m.Rules.Closes(c.Begun, own) || c.attempt(own) == 1 && !f.m.Rules.MayStart(start, f.startBy(own)) {
		newest, rest = own, slots.Slot{}
	}
	if f.m.Single || f.m.CatchUp == CatchUpNone || c.DoneUntil.IsZero() {
		return rest
	}
	from := f.m.Rules.Oldest(start.Add(-f.m.CatchesUpWithin(own)), c.newest(), c.doneEnd())
	missed := newest
	if f.m.CatchUp == CatchUpAll {
		if missed = f.m.Schedule.At(from); missed.Start.Before(from) {
			missed = f.m.Schedule.Next(from)
		}
		if f.exhausted(missed) {
			missed = f.m.Schedule.Next(missed.Start)
		}
	}
	if missed.Start.Before(from) || missed.Start.After(newest.Start) || f.m.IsDone(*c, missed) || f.exhausted(missed) {
		return rest
	}
	return missed
}

// leastCatchUp is how long ago a slot may have started that is run late, unless slots are longer.
const leastCatchUp = 24 * time.Hour

// CatchesUpWithin is how long before a time within a slot one may have started that is run late.
func (c *Config) CatchesUpWithin(slot slots.Slot) time.Duration {
	if c.CatchUpFrom == 0 {
		return max(leastCatchUp, slot.Length())
	}
	return c.CatchUpFrom
}

// doneEnd is the end of the newest slot that is done.
func (c *Carried) doneEnd() time.Time {
	if c.Done.IsZero() {
		return c.DoneUntil
	}
	return c.Done.End
}

// oldest is never before the slot that was attempted last, whose attempts alone are counted; nor does it lie
// in the newest slot that is done: what begins in that was no slot of the present schedule then.
func oldest(from, attempted, done time.Time) time.Time { return later(from, later(attempted, done)) }

// Passed are slots that a claim gives up: it is for the work of a later one.
type Passed struct {
	First slots.Slot // zero: there are none
	Until time.Time
	Why   Reason
}

// passed are the slots before the work of a claim after a head that nobody has begun, and nobody begins any more: the claim's
// worker is the one that knows. Those that it has reported already are not among them: so what was kept back before one of those
// comes first.
func (f facts) passed(head store.Record) (kept, p Passed) {
	v, work := &f.s.View, f.workAfter(head)
	if f.m.Single || f.m.CatchUp == CatchUpNone && !head.Triggered() || v.Carried.DoneUntil.IsZero() || work.IsZero() {
		return kept, p
	}
	if seen := f.seen(); v.Missed.After(seen) {
		kept = Passed{Until: v.MissedFrom, Why: TooLate}.since(f.m.Schedule.Next(seen), work)
	}
	p = Passed{Until: work.Start, Why: Unattended}.since(f.m.Schedule.Next(later(f.seen(), v.Missed)), work)
	if !p.First.Start.After(v.AwayTo) {
		p.Why = cmp.Or(v.Away, Unattended)
	}
	if head.SlotStart.Before(p.First.Start) && head.WindowEnd.After(p.First.Start) {
		p.Why = Overrunning // The run of an earlier slot went on into it.
	}
	return kept, p
}

// since are those of them from a slot on, and before the work of a claim; the zero Passed if there are none.
func (p Passed) since(first, work slots.Slot) Passed {
	if work.Start.Before(p.Until) {
		p.Until = work.Start
	}
	if !first.Start.Before(p.Until) {
		return Passed{}
	}
	p.First = first
	return p
}

// seen is a time within the newest slot that the ledger shows to be begun, or done; one that was given back before it began is
// not.
func (f facts) seen() time.Time {
	c := &f.s.View.Carried
	attempted := c.newest()
	if c.Attempt == 0 && c.Triggered.IsZero() {
		attempted = attempted.Add(-1)
	}
	return later(attempted, c.doneEnd().Add(-1))
}

// tellPassed reports them, once the claim is known to have succeeded.
func (x *step) tellPassed(kept, p Passed) {
	if !kept.First.IsZero() {
		x.note(Note{What: Missed, Slot: kept.First, Until: kept.Until, Why: kept.Why})
	}
	if !p.First.IsZero() {
		x.tellMissed(p.First, p.Until, p.Why)
	}
}

// workAfter is the work of a claim after a head.
func (f facts) workAfter(head store.Record) slots.Slot {
	return f.work(f.m.Rules.Start(f.s.Bid.Claim, head))
}

// undecided reports that the claim has to wait until its slot begins: whether an earlier one is to be run
// late depends on what comes of that.
func (f facts) undecided(head store.Record) bool {
	b := &f.s.Bid
	return f.m.Once && f.m.CatchUp != CatchUpNone && f.at.Now.Earliest.Before(b.Slot.Start) && f.workAfter(head) != b.Slot
}

// within is the slot in which a term is, or begins: another than that of its work, if this is late or goes on.
func (f facts) within(t Term) slots.Slot {
	at := later(f.at.Now.Mid(), t.Start)
	if !f.m.Once || at.Before(t.Slot.End) {
		return t.Slot
	}
	return f.m.Schedule.At(at)
}
