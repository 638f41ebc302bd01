package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Closing is what is to be recorded of a slot whose work has ended by itself.
type Closing struct {
	Claim   string        // of the term under which the work was done
	Done    slots.Slot    // the slot that is done; zero: none is
	Work    slots.Slot    // the slot whose work that was
	Outcome string        // Metadata of the record that says so
	Release bool          // others may try
	Unbegun bool          // and no code ran under the term
	Until   time.Duration // the local reading up to which a worker that stops tries to record it
	Empty   int           // how often the ledger has looked empty
}

// closeLate is how long at least a worker that stops tries to record that work is done.
const closeLate = time.Minute

// mostEmpty is how often a ledger may look empty, to reads that are stale, before it
// is taken for lost.
const mostEmpty = 10

// finished takes in that the user's code has ended by itself.
func (x *step) finished(e Finished) {
	s, mid := x.s, x.at.Now.Mid()
	t := s.Hold.Held
	if t.IsZero() {
		t = s.Hold.Left // It ended with its lease, or right after it.
	}
	if t.IsZero() || x.failedBefore(e) {
		return
	}
	slot := t.Slot
	if x.m.Continuous && t.Slot.Start.After(mid) {
		// The lease goes on into the next slot, and this one's work has ended.
		slot = x.m.Schedule.At(mid)
		s.Hold.WonEnd, s.Bid.Recheck = t.Slot.Start, x.at.Local
	}
	c := &s.Closing
	c.Until = x.at.Local + max(slot.End.Sub(mid), closeLate)
	if !c.Release || !c.Unbegun { // else a newer term is to be released, and this one is over
		c.Claim, c.Release, c.Unbegun = t.Claim, c.Release || !e.Done, false
	}
	if e.Done {
		x.s.Report.ended(t)
		c.Outcome = x.outcome(t, slot, false, true, e.Work).Metadata()
		c.Work, slot = slot, x.doneBy(t)
		c.Done, c.Release = slot, c.Release || x.m.Once && (t.endsLater() || !x.m.Trigger.IsZero())
		x.works()
	} else if !e.GivesBack {
		x.report(t, slot, true, true, e.Work)
		x.troubled(slot, CodeFailed)
	}
	x.turnAway(e, t, slot)
	if s.Hold.holding() {
		x.expire(e.why())
	}
	if failed := !e.Done && !e.GivesBack; failed {
		x.triesAgain(t)
	}
}

// turnAway has others go first in a slot whose work has failed, or nobody if it is done.
func (x *step) turnAway(e Finished, t Term, slot slots.Slot) {
	b := &x.s.Bid
	switch {
	case e.Done, !x.m.Once && e.GivesBack:
		b.SkipSlot = slot.Start
	case !x.m.Once:
		x.yield(slot)
	case t.Missed:
		b.YieldSlot = x.within(t).Start // in which the next attempt may come
	default:
		b.YieldSlot = slot.Start
	}
}

// failedBefore reports that the work had failed when it ended, since it took too long.
func (x *step) failedBefore(e Finished) bool {
	h := &x.s.Hold
	if h.holding() || !h.Cut || !e.Done {
		return false
	}
	x.wrote(e.Work.Output)
	return true
}

// why is why a lease ends with its work.
func (e Finished) why() Reason {
	if e.Done || e.GivesBack {
		return CodeDone
	}
	return CodeFailed
}

// closing reports that something is to be recorded of a slot, and may be.
func (f facts) closing() bool {
	c := &f.s.Closing
	if f.s.Stopping && f.at.Local >= c.Until {
		return false
	}
	return !c.Done.IsZero() || c.Release && (c.Unbegun || !f.m.awaits(f.s, Releasing))
}

// recording reports that what is under way, or comes next, is to record that work is done. That
// changes no term, so it need not wait until the time is known; and others wait only for so long
// before they run the work again.
func (f facts) recording() bool {
	if f.m.Rules.InDoubt&Recording == 0 || f.s.Closing.Done.IsZero() || !f.closing() {
		return false
	}
	poisoned := f.s.View.Watch.Seq != 0 // That has to be superseded first.
	return !poisoned && (f.s.Bid.Claim.ID == "" || f.s.Bid.Record.Kind == store.KindDone)
}

// closeSlot prepares the record that closes a slot, and reports whether there is one.
func (x *step) closeSlot(head store.Record) bool {
	s := x.s
	c := &s.Closing
	if !x.closing() {
		return false
	}
	if head.Seq == 0 {
		if c.Empty++; c.Empty > mostEmpty {
			*c = Closing{} // The ledger was lost, and with it everything that others know.
		}
		x.backOff(nil)
		return false
	}
	if !c.Done.IsZero() {
		if head.Claim != c.Claim {
			c.Done = x.m.Rules.DoneAfter(c.Work, c.Done, head, x.m.Schedule)
		}
		if !x.m.IsDone(s.View.Carried, c.Done) || x.takenBack(head) {
			s.Bid.send(x.done(head), head)
			return true
		}
		x.noteDone(head, c.Work) // Recorded by an append of unknown outcome, or by another worker.
		c.Done = slots.Slot{}
	}
	if !c.Release || !c.Unbegun && x.m.awaits(s, Releasing) {
		return false
	}
	claim := c.Claim
	*c = Closing{}
	if !x.releasable(head, claim) {
		_, granted := x.m.Rules.Granted(head)
		if another := granted && head.Claim != claim && head.SlotStart.Equal(s.Hold.Freed.Start); another && s.Hold.FreedLate > 0 {
			s.Hold.Freed = slots.Slot{} // That worker says what comes of it.
		}
		x.dropFreed() // It isn't free by this worker's doing.
		return false
	}
	x.release(head)
	return true
}

// tryAgain turns back to a slot whose work has failed, and whose rest was released, if
// enough of that is left and no standby looks at it any more. It reports whether that is
// so. Standbys look at the ends of parts, up to the opening of claims for the next slot.
func (x *step) tryAgain(released store.Record) bool {
	s, left := x.s, x.s.Hold.Left
	opens := x.m.opens(x.m.Schedule.Next(left.Slot.Start))
	failed := (x.m.Once || s.Hold.Freed.IsZero()) && released.Claim == left.Claim && s.Bid.YieldSlot.Equal(left.Slot.Start)
	if !failed || !x.at.Now.Mid().Before(left.Slot.End) || s.Stopping || s.Hold.WonEnd.Before(opens) {
		return false
	}
	s.Hold.WonEnd = released.WindowEnd
	turned := s.Bid.Slot
	s.Bid.Slot = left.Slot
	s.Bid.drop()
	if !x.standBy(released.WindowEnd) {
		x.target(turned)
	}
	return true
}

// triesAgain says when work may be tried again that has failed here.
func (x *step) triesAgain(t Term) {
	failed := x.s.View.Carried.failed(t.Slot)
	if !x.m.Once || x.m.Single || failed < 1 || x.m.LastAttempt(failed) {
		return
	}
	until := x.at.Now.Latest.Add(x.m.Rules.Retry(x.m.MinRetry(t.Slot.Length()), failed, t.Slot.Length()))
	if until.Before(x.within(t).End) {
		x.s.Hold.Postponed = t.Claim
		x.note(Note{What: Postponed, Slot: t.Slot, Until: until, Count: x.s.View.Carried.Attempt})
	}
}

// postpone waits for the next attempt at a slot, and says so once. A single claim is told so, even if that is due after the slot.
func (x *step) postpone(until time.Time, slot slots.Slot) {
	b := &x.s.Bid
	if x.m.Single || until.Before(b.Slot.End) && x.s.View.Known.Claim != x.s.Hold.Postponed {
		x.note(Note{What: Postponed, Slot: slot, Until: until, Count: x.s.View.Carried.Attempt})
	}
	b.wait(until.Add(x.turn(false)), timeline.Earliest)
}

// doneStored takes in that a slot is known to be done. Another may have been done
// meanwhile.
func (x *step) doneStored(r store.Record) {
	s := x.s
	if x.at.Local-s.View.HeadReadAt.Local > x.m.Rules.ClaimAge {
		// The head was read too long ago: the key may have been trimmed meanwhile, and a
		// record that was stored there late is seen by nobody.
		x.reread()
		return
	}
	x.observeRecord(r)
	slot := s.View.Carried.DoneSlot()
	if o, told := r.Outcome(); told {
		slot = slots.Slot{Start: o.SlotStart, End: o.SlotEnd}
	}
	x.noteDone(r, slot)
	if x.m.IsDone(s.View.Carried, s.Closing.Done) || r.Metadata == s.Closing.Outcome { // To say it once more would change nothing.
		s.Closing.Done = slots.Slot{}
	}
	x.moveUp(r)
	x.reread()
}

// noteDone reports a record by which the work of a slot is done. It may name a later one that was skipped for it.
func (x *step) noteDone(r store.Record, slot slots.Slot) {
	x.note(Note{What: SlotDone, Slot: slot, Record: r})
}

// done makes the record that says that work is done, and what came of it.
func (f facts) done(head store.Record) store.Record {
	r := f.m.Rules.Repeat(f.stamped(store.KindDone, head.Seq+1), head)
	r.Metadata = f.s.Closing.Outcome
	if f.m.Trigger.IsZero() {
		f.sayDone(&r, f.s.Closing.Done)
	}
	f.settles(&r)
	return r
}

// sayDone makes a record say that a slot is done. For earlier versions DoneUntil never goes back.
func (f facts) sayDone(r *store.Record, slot slots.Slot) {
	r.DoneUntil, r.Done = later(r.DoneUntil, slot.End), f.m.doneSlot(slot).String()
}
