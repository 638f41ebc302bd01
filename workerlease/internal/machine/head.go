package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is the way of a head that was read, from top to bottom: headRead, judge,
// claimAfter, then the questions they ask, in order.

// headRead takes in the newest records of the ledger.
func (x *step) headRead(e HeadRead) {
	s := x.s
	if e.Err != nil {
		x.failed(ReadingHead, e.Err)
		x.regroup()
		return
	}
	s.Retries.over()
	s.View.ReadAt = x.m.Rules.ReadAt(x.at.Now)
	records, enough := x.reachable(x.readable(e.Records))
	if !enough {
		x.readHead()
		return
	}
	x.checkLastGrant(records)
	var head store.Record // The zero Record is an empty ledger.
	if len(records) > 0 {
		head, records = records[0], records[1:]
	}
	obeyed := x.poison(head) == nil
	if s.View.HeadReadAt = (ReadTime{}); obeyed {
		s.View.HeadReadAt = ReadTime{Fixed: x.at.Now.Earliest, Local: x.at.Local}
	}
	if s.Stopping {
		// A read from before the stop may come while the user's code still runs.
		if !x.m.awaits(s, Releasing) {
			x.observeRecord(head)
			x.surrender(head)
		}
		return
	}
	x.judge(head, records)
	if obeyed && s.Bid.ReadEpoch == x.at.Epoch && s.Clock.SettleAt.IsZero() {
		s.Clock.SettleAt = head.WindowEnd
		if head.WindowEnd.IsZero() {
			s.Clock.SettleAt = x.at.Now.Earliest
		}
	}
}

// judge decides what the head means for the bid; below are older records, if they
// were read. The first case that applies settles it.
func (x *step) judge(head store.Record, below []store.Record) {
	s := x.s
	if x.aged() {
		x.renewClaim()
		return
	}
	if why := x.poison(head); why != nil {
		x.watch(head, below, why)
		return
	}
	s.View.Watch = Watch{}
	x.observeRecord(head)
	x.compareSchedule(head)
	if x.closeSlot(head) {
		return // What has ended is recorded before anything else.
	}
	held := s.Hold.Held
	granted := head.Kind == store.KindGrant
	switch {
	case s.Bid.Claim.ID == "":
		s.Bid.Stage = Aiming // The head was read to close a slot, and there is nothing to record.

	// The worker's own term, or its group's.
	case x.goesOn(head) && granted && head.WindowEnd.After(held.End):
		x.confirm(head, true) // The outcome of the extension was unknown until now.
	case x.goesOn(head) && x.extendable(head):
		s.Bid.send(x.extension(held, head.Seq))
	case granted && x.m.Rules.Mine(head, x.m.identity(s.Bid.Claim.ID)):
		x.confirm(head, true)
	case granted && x.joinable(head):
		x.confirm(head, false)
	case granted && x.inTheWay(head):
		x.release(head)

	// The slot is not to be claimed, or not yet.
	case s.Bid.Role == Joiner:
		x.next()
	case x.m.Once && x.m.Rules.IsDone(s.View.Carried, s.Bid.Slot):
		if s.Bid.Role != Standby && !s.Bid.skips() {
			x.note(Note{What: Lost, Slot: s.Bid.Slot, Record: head})
		}
		x.next()
	case x.m.Once && x.exhausted(s.Bid.Slot) && x.m.Rules.MayExtend(head, x.at.Now):
		x.lose(head) // The last attempt may yet succeed.
	case x.m.Once && x.exhausted(s.Bid.Slot):
		x.note(Note{What: Exhausted, Slot: s.Bid.Slot, Count: s.View.Carried.Attempt})
		x.next()
	case x.undecided():
		s.Bid.wait(s.Bid.Slot.Start.Add(x.turn(s.Hold.had(s.Bid.Slot, x.m.Once))), timeline.Earliest)

	default:
		x.claimAfter(head)
	}
}

// claimAfter claims the window after the head, if that leaves time to work and
// nobody may still extend the term before it.
func (x *step) claimAfter(head store.Record) {
	s, now := x.s, x.at.Now
	start := x.m.Rules.Start(s.Bid.Claim, head)
	soon := start.Add(-x.m.Rules.Ahead / 2)
	switch {
	case !x.worth(start, s.Bid.Claim.End) && head.WindowEnd.After(s.Bid.Slot.Start):
		x.lose(head)
	case !x.worth(start, s.Bid.Claim.End):
		x.miss(s.Bid.Slot.End)
		x.next()
	case x.mayExtend(start, head):
		x.lose(head)
	case x.m.Rules.Gap(start, head, now):
		turn := head.WindowEnd
		if x.m.Failover > 0 {
			turn = turn.Add(x.turn(false)) // All come at once.
		}
		s.Bid.wait(turn, timeline.Earliest)
	case now.Earliest.Before(soon):
		// The head ends late in the slot, or the time is quite uncertain: a claim that
		// far ahead could be poison to others. Come again nearer to it.
		s.Bid.wait(soon, timeline.Earliest)
	default:
		s.Bid.send(x.grant(head, start))
	}
}

// readable leaves out a newest record that has no key, and reports it.
func (x *step) readable(records []store.Record) []store.Record {
	if len(records) == 0 || records[0].Seq != 0 {
		return records
	}
	x.note(Note{What: Poison, Slot: x.s.Bid.Slot, Record: records[0], Err: errors.New(records[0].Defect)})
	return records[1:]
}

// aged reports that the claim is too old to be worked under. Its age is what the
// local clock says, at the most: that is known however uncertain store time is.
func (f facts) aged() bool {
	b, most := &f.s.Bid, f.m.Rules.ClaimAge
	if b.extends() {
		most = lookAge
	}
	age := f.at.Local - b.Claim.Local
	age += time.Duration(float64(age) * timeline.MaxDrift)
	return b.Claim.ID != "" && age > most
}

// compareSchedule reports a head that was written under another schedule, once.
func (x *step) compareSchedule(head store.Record) {
	v, theirs := &x.s.View, head.Schedule
	if head.Kind == store.KindGrant && theirs != "" && theirs != x.m.Schedule.String() && theirs != v.Mismatch {
		v.Mismatch = theirs
		x.note(Note{What: Mismatch, Slot: x.s.Bid.Slot, Record: head})
	}
}

// goesOn reports that the head is of the term that is held, and that this may be
// extended.
func (f facts) goesOn(head store.Record) bool {
	held := f.s.Hold.Held
	return (f.m.Failover > 0 || f.m.Continuous) && held.Own && f.m.Rules.Extend(held, head, f.m.identity(held.Claim))
}

// extendable reports that the claim is for what comes after the term held. Without
// Continuous, the next slot is another term.
func (f facts) extendable(head store.Record) bool {
	b, end := &f.s.Bid, f.s.Hold.Held.End
	return head.WindowEnd.Equal(end) && b.Claim.End.After(end) && (f.m.Continuous || end.After(b.Slot.Start))
}

// joinable reports that the head grants one's own group a window that is of use here:
// it reaches into the slot, is not over, and is not held already.
func (f facts) joinable(head store.Record) bool {
	return f.m.Rules.Kin(head, f.m.identity("")) &&
		head.WindowEnd.After(f.s.Bid.Slot.Start) &&
		!f.m.Rules.over(f.at.Now, head.WindowEnd, f.m.Margin) &&
		!f.s.Hold.knows(head.Claim)
}

// inTheWay reports that the head is a claim of one's own which came to nothing, reaches
// into the slot, and can be released.
func (f facts) inTheWay(head store.Record) bool {
	void := f.s.Bid.VoidClaim
	return head.WindowEnd.After(f.s.Bid.Slot.Start) && f.unused(void) && f.releasable(head, void)
}

// unused reports that nobody works under a claim in the head, or will.
func (f facts) unused(claim string) bool {
	h := &f.s.Hold
	return claim != h.Held.Claim && claim != h.Next.Claim && (claim != h.Left.Claim || !f.m.awaits(f.s, Releasing))
}

// exhausted reports that a slot was tried as often as it may be.
func (f facts) exhausted(slot slots.Slot) bool {
	return f.m.MaxAttempts > 0 && f.s.View.Carried.attempt(slot) > f.m.MaxAttempts
}

// undecided reports that the claim has to wait until the slot before is over, because
// whether that was missed depends on it.
func (f facts) undecided() bool {
	return !f.missed(f.s.Bid.Slot).IsZero() && f.at.Now.Earliest.Before(f.s.Bid.Slot.Start)
}

// worth reports whether a window would leave any time to work.
func (f facts) worth(start, end time.Time) bool {
	start = later(start, f.at.Now.Earliest)
	return start.Add(MinWindow(f.at.Now.Uncertainty(), f.m.Margin)).Before(end)
}

// mayExtend reports that a claim would begin, within a slot, after a term that its
// holder may yet extend: its record shows that it is a part of a slot. A worker that
// takes over itself comes again when that has ended.
func (f facts) mayExtend(start time.Time, head store.Record) bool {
	part := f.m.Failover > 0 || head.WindowEnd.Before(head.SlotEnd)
	return part && start.After(f.s.Bid.Slot.Start) && f.m.Rules.MayExtend(head, f.at.Now)
}
