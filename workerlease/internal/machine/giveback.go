package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file gives back what a worker has won and doesn't use: the rest of a term that a
// clock jump has ended, the next slot if it was won by the clock from before a jump, and the
// next slot while the user's code overruns. The worker claims it again, as a new term, once its
// code has returned and the time is known well enough.

// giveBack has the rest of a term released: at once if no code ran under it (unbegun), else
// when that has returned. What a group holds is never released, and a record of work that
// is done goes first.
func (x *step) giveBack(t Term, unbegun bool) (ok bool) {
	s := x.s
	if !t.Own || x.m.Group != "" || s.Stopping || !s.Closing.Done.IsZero() {
		return false
	}
	rest := t.End.Sub(x.at.Now.Mid())
	s.Closing = Closing{Claim: t.Claim, Release: true, Unbegun: unbegun, Until: x.at.Local + max(rest, closeLate)}
	if !x.m.Single {
		s.Hold.Freed, s.Hold.FreedLate = x.within(t), 0
	}
	return true
}

// giveBackNext gives back the slot that is won, when the code of the one before it has
// overrun into it for too long.
func (x *step) giveBackNext() {
	h := &x.s.Hold
	next := h.Next
	if x.m.Rules.GivesBack&WhileOverrun == 0 || !h.keepsNext() || x.at.Now.Earliest.Before(x.m.keeps(next)) || !x.giveBack(next, true) {
		return
	}
	x.s.Bid.VoidClaim, h.Next = next.Claim, Term{}
}

// keepsNext reports that the user's code overruns, and so keeps a slot from others.
func (h *Hold) keepsNext() bool { return h.overrunning() && h.Overran && h.Next.Own }

// keeps is up to when a slot that is won is kept for code that overruns: for an eighth of
// it or, if another worker is to take over from one that has died, as long before as an
// extension would come.
func (c *Config) keeps(next Term) time.Time {
	wait := next.Slot.Length() / 8
	if c.Failover > 0 {
		wait = min(wait, c.early())
	}
	return next.Start.Add(wait)
}

// forgetFreed gives up a slot whose rest was given back, when it is too late for that.
func (x *step) forgetFreed() {
	slot := x.s.Hold.Freed
	if !slot.IsZero() && !x.at.Now.Mid().Before(x.m.abandoned(slot)) {
		x.dropFreed()
	}
}

// dropFreed gives up a slot whose rest was given back, and reports it if code overran, or
// none was begun in it.
func (x *step) dropFreed() {
	h := &x.s.Hold
	slot := h.Freed
	h.Freed = slots.Slot{}
	overran := h.overrunning() && h.Overran
	begun := (slot == h.Left.Slot || h.Left.Missed) && !x.s.Bid.unbegun(h.Left.Claim)
	if slot.IsZero() || begun && !overran {
		return
	}
	why := ClockJumped
	switch {
	case h.Overran:
		why = Overrunning
	case h.FreedLate > 0:
		why = TooLate
	case x.m.unfitFor(x.s, Beginning):
		why = Ineligible
	}
	x.passOver(slot, slot.End, why)
}

// reclaim turns to the slot whose rest was given back, and reports whether it did so. It waits
// until a jump is settled: before, the time may be too uncertain for a claim, and the worker would
// give the slot up.
func (x *step) reclaim() bool {
	s, mid := x.s, x.at.Now.Mid()
	slot := s.Hold.Freed
	if slot.IsZero() || s.Closing.Release || s.Hold.Running || s.Bid.Stage != Aiming || s.Clock.Unknown() || x.undecidable() {
		return false
	}
	if slot.Start.After(mid) && slot == s.Hold.Left.Slot {
		slot = x.m.Schedule.At(mid) // The lease went on into the next slot.
	}
	if s.Bid.SkipSlot.Equal(slot.Start) || !s.Hold.Next.IsZero() {
		x.dropFreed()
		return false
	}
	s.Hold.Freed = slots.Slot{}
	if s.Bid.YieldSlot.Equal(slot.Start) && x.at.Now.Earliest.Before(s.Bid.YieldUntil) {
		s.Bid.Slot = slot
		s.Bid.drop()
		if x.standBy(x.at.Now.Earliest) {
			return true
		}
	}
	if s.Hold.FreedLate > 0 {
		s.Bid.Role = Claimant // It has begun nothing there, and stands by for nobody.
	}
	x.target(slot)
	if s.Hold.FreedLate > 1 {
		x.claimsLess(slot)
	}
	return true
}

// claimsLess puts off the claim of a slot whose claims have come too late again and again, each time for longer: the store is slow at
// them, and each is two records.
func (x *step) claimsLess(slot slots.Slot) {
	s := x.s
	again := x.at.Now.Earliest.Add(x.m.Rules.Again(x.m.lead(slot), s.Hold.FreedLate-1, slot.Length()) + x.turn(false))
	if again.Before(x.m.abandoned(slot)) {
		s.Bid.wait(again, timeline.Earliest)
		return
	}
	x.passOver(slot, slot.End, x.whyMissed())
	x.next()
}
