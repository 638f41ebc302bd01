package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// This file is up to when the work of a slot may be begun for the first time, and who says that it
// was not. Attempts that follow one are bound by the slot, and by how many there may be.

// DefaultStart stands for what store.JobTimes says of it: who comes hours late is to ask for that.
const DefaultStart time.Duration = -1

// startWithin is how late after the start of a slot the first attempt at it may begin; 0: as long as
// the slot lasts.
func (c *Config) startWithin(slot slots.Slot) time.Duration {
	if c.StartWithin == DefaultStart {
		return store.JobTimes{StartDefault: true}.StartsWithin(slot.Length())
	}
	return c.StartWithin
}

// startBy is up to when the first attempt at a slot may begin; the zero time: as long as it lasts.
func (c *Config) startBy(slot slots.Slot) time.Time {
	within := c.startWithin(slot)
	if !c.Once || within == 0 {
		return time.Time{}
	}
	return slot.Start.Add(within)
}

// mayStart goes by when work is due: a job of the night is none of the day. What has begun once goes on.
func mayStart(at, by time.Time) bool { return by.IsZero() || !at.After(by) }

// pastStart reports that a first attempt at the bid's slot would begin too late now.
func (f facts) pastStart() bool {
	slot := f.s.Bid.Slot
	return f.m.Once && f.s.View.Carried.attempt(slot) == 1 && !f.m.Rules.MayStart(f.at.Now.Earliest, f.startBy(slot))
}

// startsTooLate turns away from a slot whose work may not be begun any more: since another term
// reaches into it, or since nobody has begun it.
func (x *step) startsTooLate(head store.Record, below []store.Record) {
	s := x.s
	slot := s.Bid.Slot
	ranInto := head.SlotStart.Before(slot.Start) && head.WindowEnd.After(x.startBy(slot))
	if ranInto && head.WindowEnd.After(x.at.Now.Earliest) {
		stoodBy := s.Bid.stoodBy()
		if !x.standBy(head.WindowEnd) { // else it sees how long that goes on
			x.next()
		}
		x.rival(slot, head)
		x.lost(slot, head, stoodBy)
		return
	}
	x.tellDead(x.dead(head, below))
	if ranInto {
		s.Bid.MissReason = Overrunning
	}
	if ranInto && x.m.Rules.GivenBack(head) && !s.Hold.knows(head.Claim) {
		x.toldOf(slot.Start, slot.Start) // The run's worker says that it skips it.
	} else {
		x.notStarted(slot)
	}
	x.next()
}

// notStarted reports a slot of a job that nobody has begun in time, once. That which the first worker of a type
// joins was due for nobody.
func (x *step) notStarted(slot slots.Slot) {
	s := x.s
	first := slot == s.Bid.First && s.Bid.Late.Equal(slot.Start.Add(-1)) && !s.View.Carried.claimed(slot)
	over := x.m.Trigger.IsZero() && x.m.Rules.Closes(s.View.Carried.Begun, slot) // Before a trigger's run.
	if !over && (x.m.Single || slot.Start.After(s.Bid.Late) && !first) {
		x.passOver(slot, slot.End, x.whyMissed())
	}
}

// passOver reports slots that were missed, unless they may yet be run late.
func (x *step) passOver(slot slots.Slot, until time.Time, why Reason) {
	if !x.mayCome(why) {
		x.tellMissed(slot, until, why)
	}
}

// mayCome reports that a slot which was not begun in time may yet be run late: who claims after it says whether it was (see
// passed). What keeps the worker from claiming is said at once.
func (f facts) mayCome(why Reason) bool {
	late := f.m.CatchUp != CatchUpNone && !f.m.Single && !f.s.View.Carried.DoneUntil.IsZero()
	return late && (why == TooLate || why == Overrunning)
}

// unattended reports the newest slot of a job that was over, or could not begin any more, when the worker
// started or could see the ledger again, if nobody has begun it, with those before it that nobody has begun either:
// once, as the ledger alone shows them. Of a type, or a schedule, that nobody has begun yet nobody knows since when
// there are slots; who has turned to a later slot was there, and so was who was paused.
func (x *step) unattended(head store.Record) {
	s, c := x.s, &x.s.View.Carried
	if s.View.Attended || !x.m.Once || x.m.Single || s.Bid.Late.IsZero() || x.m.startBy(s.Bid.First).IsZero() {
		return
	}
	s.View.Attended = true
	slot := x.m.Schedule.At(later(s.Bid.Late, s.View.AwayTo))
	begun := (c.claimed(slot) || s.View.Away != 0) && !x.m.Foreign(*c)
	attended := head.SlotStart.After(slot.Start) && !head.Triggered() || s.View.Away == 0 && x.pausedAt(x.m.startBy(slot))
	if !begun || attended || x.ranInto(head, slot) || x.m.IsDone(*c, slot) || c.attempt(slot) != 1 || !x.isTooLate(slot) {
		return
	}
	if x.mayCome(TooLate) && !x.work(x.at.Now.Earliest).IsZero() {
		return // Who claims that tells what it passes.
	}
	x.tellMissed(x.m.Schedule.At(x.unbegun(head, slot.Start)), slot.End, cmp.Or(s.View.Away, Unattended))
}

// isTooLate reports that a slot may not be begun for the first time any more. One that was over when a trigger's run began was
// not missed.
func (f facts) isTooLate(slot slots.Slot) bool {
	by, last := f.startBy(slot), f.m.abandoned(slot)
	if by.After(last) {
		by = last
	}
	return !f.m.Rules.Closes(f.s.View.Carried.Begun, slot) && !f.m.Rules.MayStart(f.at.Now.Earliest, by)
}

// ranInto reports that an earlier slot's work kept a slot from its beginning, and that its worker says what it skips for it.
func (f facts) ranInto(head store.Record, slot slots.Slot) bool {
	word := f.m.Rules.GivenBack(head) || head.WindowEnd.After(f.at.Now.Earliest)
	return head.SlotStart.Before(slot.Start) && head.WindowEnd.After(f.startBy(slot)) && word
}

// away turns from slots of a job, up to a time, of which the worker doesn't know what others made, and reports whether it does: the
// next head shows that.
func (x *step) away(until time.Time) bool {
	v, why := &x.s.View, x.whyMissed()
	knows := x.s.Bid.Role == Claimant && why != TooLate && why != Unreachable && why != Ineligible
	if !x.m.Once || x.m.Single || knows {
		return false
	}
	v.AwayTo, v.Attended, v.Away = x.m.Schedule.At(until.Add(-1)).Start, false, why
	return true
}

// pausedAt reports that a pause which is in force was given before a time.
func (x *step) pausedAt(at time.Time) bool {
	orders, _ := store.ParseOrders(x.s.View.Carried.Orders)
	return slices.ContainsFunc(orders, func(o store.Order) bool {
		return o.Kind == store.OrderPause && o.InForce(x.at.Now.Earliest) && o.At.Before(at)
	})
}

// unbegun is when the first slot begins that comes after the work which the ledger shows; at most a time. The one in which a
// run ended that was none of its own is unbegun, too, and so is one that was given back before it began.
func (x *step) unbegun(head store.Record, most time.Time) time.Time {
	c := &x.s.View.Carried
	seen, last := c.DoneUntil, x.m.Schedule.At(head.WindowEnd)
	switch {
	case head.Triggered() && last.Contains(c.Begun):
		seen = later(seen, head.WindowEnd)
	case head.Triggered():
		seen = later(seen, last.Start)
	case c.Attempt == 0:
		seen = later(seen, head.SlotStart)
	default:
		seen = later(seen, head.SlotEnd)
		switch {
		case !head.WindowEnd.After(seen):
		case x.m.Rules.GivenBack(head) && head.WindowEnd.After(x.m.startBy(last)):
			seen = last.End // Its worker has said that it skipped that.
		default:
			seen = last.Start
		}
	}
	if c.DoneUntil.IsZero() && c.Slot.IsZero() {
		seen = later(seen, x.s.Bid.First.Start) // It was there, and nobody before it, as far as that shows.
	}
	if !seen.Before(most) {
		return most
	}
	slot := x.m.Schedule.At(seen)
	if slot.Start.Before(seen) {
		return slot.End
	}
	return slot.Start
}

// startsLate gives back the slot that is won, if its work may not be begun for the first time any more,
// and reports that it doesn't begin.
func (x *step) startsLate() bool {
	h := &x.s.Hold
	next := h.Next
	if !x.m.Once || next.Attempt != 1 || next.Missed || x.m.Rules.MayStart(x.at.Now.Earliest, x.m.startBy(next.Slot)) {
		return false
	}
	if x.giveBack(next, true) {
		x.passOver(next.Slot, next.Slot.End, x.whyMissed())
		x.s.Bid.VoidClaim, h.Next, h.Freed = next.Claim, Term{}, slots.Slot{}
	}
	return true
}
