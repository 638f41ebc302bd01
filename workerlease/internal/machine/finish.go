package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is about work that its slot is too short for. Its lease goes on over boundaries, as a
// continuous one does, and its records keep the slot whose work it is: so they show which slots began
// meanwhile, and nobody takes those for begun. When it has ended, the done record names the newest slot
// that can't begin any more, and the rest of the term is released.

// runsOn reports that a term goes on into the slot after the one in which it ends, for work that has to
// finish: whoever prefers another worker or pauses waits for that, unless it is to end at once.
func (f facts) runsOn(t Term) bool {
	return f.m.Once && f.m.Finishes && t.Own && f.m.Rules.Finishes(t)
}

// finishes lets any work finish.
func finishes(Term) bool { return true }

// doneBy is the slot that a done record names when the work of a term has ended well: that of the term or, if
// others began meanwhile, the newest that may not begin any more.
func (f facts) doneBy(t Term) slots.Slot {
	now := f.m.Schedule.At(f.at.Now.Mid())
	if !f.runsOn(t) || f.m.catchesUp(t) || !now.Start.After(t.Slot.Start) {
		return t.Slot
	}
	if f.m.Rules.MayStart(f.at.Now.Earliest, f.m.startBy(now)) {
		now = f.m.Schedule.At(now.Start.Add(-1))
	}
	if now.Start.Before(t.Slot.Start) {
		return t.Slot
	}
	return now
}

// doneAfter is the slot that a done record names after a head, when work of a slot has ended: none that another worker has
// begun since its lease ended, or begins yet, since a trigger's run keeps it waiting.
func doneAfter(work, done slots.Slot, head store.Record, by slots.Schedule) slots.Slot {
	began := head.SlotStart
	if head.Triggered() {
		began = by.Next(carry(head).Begun).Start
	}
	if !began.After(work.Start) || began.After(done.Start) {
		return done
	}
	return by.At(began.Add(-1))
}

// endsLater reports that a term reaches beyond the end of the slot whose work was done under it: others may
// have the rest.
func (t Term) endsLater() bool { return t.End.After(t.Slot.End) }

// skipped tells of each slot that can't begin any more, because work of an earlier one goes on, once: of one that is over
// by now, too, as when the machine was busy.
func (x *step) skipped() {
	h := &x.s.Hold
	if !x.m.maySkip(h) || !x.runsOn(h.Held) {
		return
	}
	next := x.m.nextSkipped(h)
	if x.at.Now.Earliest.Before(x.m.skipsAt(next)) {
		return
	}
	h.Skipped = next.Start
	x.toldOf(next.Start, next.Start)
	h.Row++
	x.note(Note{What: Outlasted, Slot: next, Of: h.Held.Slot, Until: h.Held.Start, Count: h.Row})
}

// maySkip reports that work goes on into slots which can't begin for it. A trigger's run keeps none of its own schedule.
func (m *Machine) maySkip(h *Hold) bool {
	return m.Once && m.Finishes && m.Trigger.IsZero() && h.holding() && h.Held.endsLater() && !m.catchesUp(h.Held)
}

// catchesUp reports that a term is for a slot that is run late, and that those after it may be, too.
func (c *Config) catchesUp(t Term) bool { return t.Missed && c.CatchUp != CatchUpNone }

// nextSkipped is the slot that work keeps from beginning next.
func (m *Machine) nextSkipped(h *Hold) slots.Slot {
	return m.Schedule.Next(later(h.Held.Slot.Start, h.Skipped))
}

// skipsAt is when a slot that waits for the end of earlier work is skipped.
func (m *Machine) skipsAt(slot slots.Slot) time.Time {
	if by := m.startBy(slot); !by.IsZero() && by.Before(slot.End) {
		return by.Add(time.Millisecond)
	}
	return slot.End.Add(-time.Millisecond)
}

// finishWaits is what to wait for while work runs: the next slot that it may keep from others, and its own
// longest time.
func (m *Machine) finishWaits(s *State) (w []Wait) {
	h := &s.Hold
	if m.Config.Timeout > 0 && (h.Running || m.Single && h.holding()) {
		w = append(w, Wait{Local: h.Began + m.Config.Timeout})
	}
	if m.maySkip(h) {
		w = append(w, Wait{Time: m.skipsAt(m.nextSkipped(h)), Edge: timeline.Earliest})
	}
	return w
}

// runsInto reports that somebody else's run may go on into the bid's slot: then that isn't claimed before it begins, by when
// the run has ended, or the head shows that it goes on. Its holder extends its lease at about the time of the first turn, and
// which of the two comes first would be chance.
func (f facts) runsInto(head store.Record) bool {
	grant, granted := f.m.Rules.Granted(head)
	if !f.m.Once || !f.m.Finishes || !granted || f.s.Hold.knows(head.Claim) || f.m.Rules.GivenBack(head) {
		return false
	}
	return !f.m.doneIn(f.s.View.Carried, grant) && f.m.Rules.Outlasts(grant, f.s.Bid.Slot, f.at.Now)
}

// startTurn is how long after the start of the bid's slot a claim comes that has waited for that: all come at once, and the
// work may have to begin soon.
func (f facts) startTurn() time.Duration {
	slot := f.s.Bid.Slot
	turn := f.turn(f.s.Hold.had(slot, f.m.Once))
	if by := f.m.startBy(slot); !by.IsZero() {
		turn = min(turn, by.Sub(slot.Start)/2)
	}
	return turn
}

// outlasts is true of a window of an earlier slot that isn't over, up to when the slot begins.
func outlasts(grant store.Record, slot slots.Slot, now timeline.Interval) bool {
	return grant.SlotStart.Before(slot.Start) && now.Earliest.Before(slot.Start) &&
		now.Earliest.Before(grant.WindowEnd) && !grant.WindowEnd.After(slot.Start)
}

// timedOut reports that the user's code has run for as long as it may.
func (f facts) timedOut() bool {
	h := &f.s.Hold
	return f.m.Config.Timeout > 0 && h.holding() && (h.Running || f.m.Single) && f.m.Rules.Exceeds(f.at.Local-h.Began, f.m.Config.Timeout)
}

// exceeds goes by all that a run takes, however many slots that is.
func exceeds(ran, most time.Duration) bool { return ran >= most }

// turnBack turns to the slot that follows the one whose work has ended, once the rest of a term that went on
// into it was released, and reports whether it did: the worker is the first to know.
func (x *step) turnBack(released store.Record) bool {
	s, left := x.s, x.s.Hold.Left
	if !x.m.Once || s.Stopping || x.m.Single || released.Claim != left.Claim || !left.endsLater() {
		return false
	}
	slot := x.m.Schedule.At(x.at.Now.Mid())
	if !slot.Start.After(later(left.Slot.Start, s.Bid.SkipSlot)) {
		slot = x.m.Schedule.Next(slot.Start)
	}
	s.Hold.WonEnd, s.Bid.Role = released.WindowEnd, Claimant
	x.target(slot)
	return true
}
