package machine

import (
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// facts are what a step knows. Their methods answer questions and make records; none
// of them changes the state.
type facts struct {
	m  *Machine
	s  *State
	at Moment
}

// ledger reads records by what is known of store time.
func (f facts) ledger() ledger.Reader {
	return ledger.Reader{Rules: &f.m.Rules.Rules, Latest: f.at.Newest.Latest}
}

// aged reports that the claim is too old to be worked under, or was made by a clock that
// is not in force any more. Its age is what the local clock says, at the most: that is
// known however uncertain store time is.
func (f facts) aged() bool {
	b, most := &f.s.Bid, f.m.Rules.ClaimAge
	if b.extends() {
		most = lookAge
	}
	age := f.at.Local - b.Claim.Local
	age += time.Duration(float64(age) * timeline.MaxDrift)
	return b.Claim.ID != "" && (age > most || b.Claim.Epoch != f.at.Epoch)
}

// due reports that the head is to be read although no claim is: to record what came of a
// slot, to learn how long other workers may act by another clock, or to supersede poison
// that has stood for long enough.
func (f facts) due() bool {
	if w := &f.s.View.Watch; w.Seq != 0 {
		return f.at.Local >= w.Over
	}
	return f.closing() || f.s.Clock.unsettled() && f.s.Clock.SettleAt.IsZero()
}

// goesOn reports that the head is of the term that is held, and that this may be
// extended.
func (f facts) goesOn(head store.Record) bool {
	held := f.s.Hold.Held
	return (f.m.Failover > 0 || f.m.Continuous || f.runsOn(held)) && held.Own && f.m.Rules.Extend(held, head, f.m.identity(held.Claim))
}

// extendable reports that the claim is for what comes after the term held. Without
// Continuous, the next slot is another term, unless work goes on into it.
func (f facts) extendable(head store.Record) bool {
	b, end := &f.s.Bid, f.s.Hold.Held.End
	return head.WindowEnd.Equal(end) && b.Claim.End.After(end) && (f.m.Continuous || f.runsOn(f.s.Hold.Held) || end.After(b.Slot.Start))
}

// joinable reports that the head grants one's own group a window that is of use here:
// it reaches into the slot, is not over, and is not held already.
func (f facts) joinable(head store.Record) bool {
	return f.m.Rules.Kin(head, f.m.identity("")) &&
		head.WindowEnd.After(f.s.Bid.Slot.Start) &&
		!f.m.Rules.over(f.at.Now, head.WindowEnd, f.m.Margin) &&
		!f.s.Hold.knows(head.Claim)
}

// inTheWay reports that the head is a claim of one's own which came to nothing, and can be released: it reaches
// into the slot, or counts as an attempt that never began.
func (f facts) inTheWay(head store.Record) bool {
	void, reaches := f.s.Bid.VoidClaim, head.WindowEnd.After(f.s.Bid.Slot.Start)
	if f.uncounts(head) {
		void, reaches = head.Claim, true
	}
	return reaches && f.unused(void) && f.releasable(head, void)
}

// unused reports that nobody works under a claim in the head, or will.
func (f facts) unused(claim string) bool {
	h := &f.s.Hold
	return claim != h.Held.Claim && claim != h.Next.Claim && (claim != h.Left.Claim || !f.m.awaits(f.s, Releasing))
}

// exhausted reports that a slot was tried as often as it may be: what counts for nothing isn't limited.
func (f facts) exhausted(slot slots.Slot) bool {
	return f.m.MaxAttempts > 0 && f.s.View.Carried.failed(slot) >= f.m.MaxAttempts
}

// mayBeDone reports that the work of the slot was tried, and that the store could not be
// reached lately: a worker that has done it may not have been able to record that yet. It
// gets the time once, or a connection that breaks in each wait would make that endless.
func (f facts) mayBeDone(head store.Record) bool {
	attempt := f.s.View.Carried.attempt(f.workAfter(head))
	return f.m.Rules.Defers && f.s.Bid.Outage && attempt > 1 && attempt != f.s.Bid.Awaited && !f.m.Rules.GivenBack(head)
}

// retryAt is the time before which a slot is not tried again, by whomever, after a head that gave it
// back: the wait doubles with each attempt that counts, up to an eighth of the slot.
func (f facts) retryAt(head store.Record, below []store.Record) time.Time {
	slot := f.workAfter(head)
	failed := f.s.View.Carried.failed(slot)
	switch {
	case slot.IsZero(), !f.m.Once, failed < 1:
		return time.Time{}
	case !head.SlotStart.Equal(slot.Start): // A record of another slot says so in the trigger.
		return askedBy(head.Orders, slot).Again
	case !f.m.Rules.GivenBack(head):
		return time.Time{}
	}
	for _, r := range append([]store.Record{head}, below...) {
		if o, told := r.Outcome(); told && f.m.Rules.Spares(o) && o.Attempt == head.Attempt && o.SlotStart.Equal(slot.Start) {
			return time.Time{} // It has come to nothing since a stop or an order, and not by a failure.
		}
	}
	return head.WindowEnd.Add(f.m.Rules.Retry(f.m.MinRetry(slot.Length()), failed, slot.Length()))
}

// retry doubles the wait with each attempt, up to an eighth of the slot unless the least is more.
func retry(least time.Duration, failed int, slot time.Duration) time.Duration {
	return min(least<<min(failed-1, 20), max(least, slot/8))
}

// MinRetry is the least time from an attempt at a slot that has failed to the next one. By default three attempts at the job of a
// night take 18 min: what it needs is restarted, or moves, in less.
func (c *Config) MinRetry(slot time.Duration) time.Duration {
	if c.LeastRetry != 0 {
		return c.LeastRetry
	}
	return min(max(slot/240, time.Second), 10*time.Minute)
}

// inDoubt reports that the bid's slot, which is free from a time on, is not to be turned away from,
// although nothing can be claimed in it: that is only because samples contradict one another, or
// have until now, and this passes.
func (f facts) inDoubt(free time.Time) bool {
	slot := f.s.Bid.Slot
	if f.m.Rules.InDoubt&Contending == 0 || !f.at.InQuestion && !f.s.Clock.unsettled() || f.s.Bid.skips() {
		return false
	}
	return f.worthIfKnown(later(slot.Start, free), f.m.opens(f.m.Schedule.Next(slot.Start)))
}

// worth reports whether a window would leave any time to work.
func (f facts) worth(start, end time.Time) bool {
	start = later(start, f.at.Now.Earliest)
	return start.Add(MinWindow(f.at.Now.Uncertainty(), f.m.Margin)).Before(end)
}

// outlivedClaim reports that the window that is claimed has ended, and that one which is claimed now leaves time to work.
func (f facts) outlivedClaim() bool {
	b, now := &f.s.Bid, f.at.Now
	if now.Earliest.Before(b.Claim.End) {
		return false
	}
	start := later(b.Slot.Start, ceil(now.Latest))
	return f.worth(start, f.m.windowEnd(b.Slot, start))
}

// worthIfKnown reports the same if the time were known well.
func (f facts) worthIfKnown(start, end time.Time) bool {
	start = later(start, f.at.Now.Mid())
	return start.Add(MinWindow(0, f.m.Margin)).Before(end)
}

// mayExtend reports that a claim would begin, within a slot, after a term that its
// holder may yet extend: its record shows that it is a part of a slot. A worker that
// takes over itself comes again when that has ended.
func (f facts) mayExtend(start time.Time, head store.Record) bool {
	part := f.m.Failover > 0 || head.WindowEnd.Before(head.SlotEnd)
	return part && start.After(f.s.Bid.Slot.Start) && f.m.Rules.MayExtend(head, f.at.Now)
}
