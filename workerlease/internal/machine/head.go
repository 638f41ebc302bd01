package machine

import (
	"errors"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is the way of a head that was read, up to judge, which decides, and the ways that
// branch off there.

// headRead takes in the newest records of the ledger.
func (x *step) headRead(e HeadRead) {
	s := x.s
	if x.telling = s.lookingFor(); x.telling != nil {
		x.telling.Looking = false
	}
	if e.Err != nil {
		x.headUnread(e.Err)
		return
	}
	s.Bid.Outage = s.Bid.Outage || s.Retries.Failures > 0
	s.Retries.over()
	s.View.ReadAt = ReadAt(x.at.Now)
	x.hinted, s.Hint.Looking = s.Hint.Looking, false
	records, enough := x.reachable(x.readable(e.Records))
	if !enough || x.hidesGrant(records) {
		x.heedAtOnce(records)
		x.readOn()
		return
	}
	if x.overridden(records) && x.maySwitch() {
		x.again()
		return
	}
	x.checkLastGrant(records)
	if x.hidesKnown(records) {
		x.heedAtOnce(records)
		x.readOn()
		return
	}
	x.compare(records)
	head, below, obeyed := x.takeIn(records)
	switch {
	case s.Hold.Looking:
		if obeyed && head.Orders != "" && head.Seq >= s.Hold.Next.Seq { // A stale one has what was tried and done before.
			x.observeRecord(head)
			x.heedOrders()
		}
		x.looked(head, obeyed)
	case s.Stopping && x.m.awaits(s, Releasing):
		x.lookedMeanwhile(head, below, obeyed)
	case s.Stopping:
		if obeyed {
			x.observeRecord(head)
		}
		x.surrender(head, below, obeyed)
	default:
		x.settle(head, below)
		if x.hinted && obeyed {
			head = x.m.Rules.Hinted(head, x.at.Now)
			if x.ranOut(head) {
				return
			}
		}
		x.judge(head, below)
	}
}

// maySwitch reports that the bid for an extension may turn to a claim.
func (x *step) maySwitch() bool {
	s := x.s
	return s.Bid.Role == Extender && !s.Hold.Looking && !s.Stopping
}

// headUnread takes in that the head can't be read.
func (x *step) headUnread(err error) {
	x.s.Hold.Looking = false
	switch {
	case x.telling != nil:
		x.lookedInVain(err)
	case x.looking():
		x.lookFailed(ReadingHead, err)
	default:
		x.failed(ReadingHead, err)
		x.regroup()
	}
}

// readOn reads the head again, and more below it, for the same purpose.
func (x *step) readOn() {
	if x.telling != nil {
		x.telling.Looking = true
	}
	x.readHead()
}

// heedAtOnce heeds the orders of a head although more has to be read below it: that read may fail, and who holds a lease is asked for
// it. A head from before its term has what was tried and done before.
func (x *step) heedAtOnce(records []store.Record) {
	s := x.s
	if len(records) < 2 || records[0].Orders == "" || !s.Hold.holding() || records[0].Seq < max(s.Hold.Held.Seq, s.View.Known.Seq) || x.ledger().Defect(records) != nil {
		return
	}
	x.observeRecord(records[0])
	x.heedOrders()
}

// takeIn splits the records into the head, the zero Record if the ledger is empty, and those below it. It remembers
// what the head says, if that can be obeyed.
func (x *step) takeIn(records []store.Record) (head store.Record, below []store.Record, obeyed bool) {
	s := x.s
	obeyed = x.ledger().Defect(records) == nil
	if len(records) > 0 {
		head, below = records[0], records[1:]
	}
	if obeyed {
		x.know(head)
		s.View.Known.reaches(below)
		x.recount(head, below)
	}
	if s.View.HeadReadAt = (ReadTime{}); obeyed && head.Seq >= max(s.Hold.Held.Seq, s.Hold.Next.Seq) { // else the read is stale
		s.View.HeadReadAt = ReadTime{Fixed: x.at.Now.Earliest, Local: x.at.Local, Seq: head.Seq}
	}
	return head, below, obeyed
}

// readable leaves out a newest record that has no key, and reports it.
func (x *step) readable(records []store.Record) []store.Record {
	if len(records) == 0 || records[0].Seq != 0 {
		return records
	}
	x.note(Note{What: Poison, Slot: x.s.Bid.Slot, Record: records[0], Err: errors.New(records[0].Defect)})
	return records[1:]
}

// longBlock is how long after the end of the bid's slot a record may still leave nothing to
// claim before that is reported: slots of another schedule may be longer.
const longBlock = 24 * time.Hour

// lookBlocked reports a head by which there is nothing to claim for long, once. The worker
// obeys it: only an operator can know that nobody works by it.
func (x *step) lookBlocked(head store.Record) {
	s, v := x.s, &x.s.View
	most, block := s.Bid.Slot.End.Add(longBlock), Block{}
	own := x.m.Rules.Mine(head, x.m.identity(s.Bid.Claim.ID)) || s.Hold.knows(head.Claim) ||
		head.Claim == s.Hold.Next.Claim || x.m.Rules.Kin(head, x.m.identity(""))
	switch done := v.Carried.DoneBefore(); {
	case s.Bid.Slot.IsZero():
	case !own && head.WindowEnd.After(most):
		block = Block{Seq: head.Seq, Until: head.WindowEnd}
	case x.m.Once && done.After(most):
		block = Block{Seq: head.Seq, Until: done, Done: true}
	}
	if block.Seq != 0 && !block.Until.Equal(v.Block.Until) {
		x.note(Note{What: Blocked, Slot: s.Bid.Slot, Until: block.Until, Record: head})
	}
	v.Block = block
}

// compareSlots reports that the newest grant, or the newest slot that is done, has a slot that this
// worker doesn't have, once for each schedule.
func (x *step) compareSlots(head store.Record, below []store.Record) {
	v, r := &x.s.View, head
	if !x.m.Trigger.IsZero() {
		return // Its slot is none of a schedule.
	}
	if i := slices.IndexFunc(below, func(r store.Record) bool { return r.Kind == store.KindGrant }); head.Kind != store.KindGrant && i >= 0 {
		r = below[i]
	}
	ours, differs := OtherSlot(x.m.Schedule, r)
	if done := v.Carried.Done; !differs && elsewhere(done, x.m.Schedule) {
		r, differs = head, true
		r.Schedule, r.SlotStart, r.SlotEnd = x.m.Schedule.String(), done.Start, done.End
		ours = x.m.Schedule.At(done.Start)
	}
	if !differs || r.Schedule == "" {
		return
	}
	was := v.Mismatch.Schedule
	v.Mismatch = Mismatched{Schedule: r.Schedule, Holder: r.InstanceID, Ours: ours, Theirs: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}}
	if r.Schedule != was {
		x.note(Note{What: Mismatch, Slot: ours, Record: r})
	}
}

// compareWork reports that the worker of the newest term does something else than this one, once for each of up to four. One that has
// written nothing since this worker came, or has ended, may have been an earlier version. A note names its writer's work.
func (x *step) compareWork(head store.Record) {
	v, own := &x.s.View, x.m.Work
	told := slices.Contains(v.OtherWork[:], head.Work) || v.OtherWork[3] != ""
	gone := x.m.Single && !head.WindowEnd.After(x.at.Now.Earliest) || !x.m.Single && !head.FixedAt.After(x.s.Bid.Came)
	if own == "" || head.Work == "" || head.Work == own || told || gone || head.Kind == store.KindOutcome {
		return
	}
	v.OtherWork = [4]string{head.Work, v.OtherWork[0], v.OtherWork[1], v.OtherWork[2]}
	x.note(Note{What: OtherWork, Record: head})
}

// confirm takes a grant that is known to be one's own, or one's group's.
func (x *step) confirm(r store.Record, own bool) {
	s := x.s
	if x.aged() {
		x.renewClaim()
		return
	}
	x.observeRecord(r)
	if own && s.Hold.knows(r.Claim) {
		x.extended(r)
		return
	}
	slot := s.Bid.Slot
	if own && x.m.Once {
		slot = slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	}
	t := x.m.Rules.Term(r, own, slot)
	t.Missed = own && x.m.Once && (slot.Start.Before(s.Bid.Slot.Start) || r.Attempt == 1 && !x.m.Rules.MayStart(r.WindowStart, x.m.startBy(slot)))
	s.Hold.Next, s.Hold.WonEnd, s.Hold.WonSeq, s.Hold.WonSlot = t, t.End, r.Seq, s.Bid.Slot.End
	s.Hold.Looked, s.Hold.Narrowed = false, false
	if own {
		x.tellDead(s.Bid.Dead)
		x.tellPassed(s.Bid.Kept, s.Bid.Passed)
	}
	what := Claimed
	if !own {
		what = Joined
	}
	x.note(Note{What: what, Slot: t.Slot, Record: r})
	x.rememberGrant(r, own)
	if s.Stopping {
		s.Bid.drop()
		return
	}
	x.scheduleNext()
}

// extended takes a window that is known to extend one's own term.
func (x *step) extended(r store.Record) {
	s := x.s
	s.Hold.WonEnd, s.Hold.WonSeq = r.WindowEnd, r.Seq
	if r.Claim != s.Hold.Held.Claim || x.at.Lapsed != 0 {
		// Too late: a term that was left is never worked under again. It is released as
		// soon as no code runs under it.
		s.Bid.VoidClaim = r.Claim
		if r.Claim == s.Hold.Left.Claim {
			s.Hold.Left.End = r.WindowEnd
			if x.m.Rules.Resume(s.Hold.Left, r) {
				s.Hold.Next = s.Hold.Left
			}
		}
		s.Bid.drop()
		return
	}
	held := &s.Hold.Held
	held.Seq, held.Kind, held.End = r.Seq, r.Kind, r.WindowEnd
	if !x.m.Once {
		held.Slot = s.Bid.Slot // else it keeps that of its work
	}
	s.Hold.WonSlot = s.Bid.Slot.End
	x.do(Extend{*held})
	x.note(Note{What: Extended, Slot: held.Slot, Record: r})
	x.rememberGrant(r, true)
	if s.Stopping {
		s.Bid.drop()
		return
	}
	x.scheduleNext()
}

// rememberGrant keeps a grant, to check later that it stands, and to trim.
func (x *step) rememberGrant(r store.Record, own bool) {
	x.s.View.LastGrant = Grant{Seq: r.Seq, Claim: r.Claim, End: r.WindowEnd}
	if own && r.Seq%x.m.Rules.TrimEvery == 0 {
		x.s.Upkeep = Upkeep{Probe: r.Seq - x.m.Rules.Keep, Step: x.m.Rules.Keep}
	}
}

// lose turns away from the slot, which another worker has: with Failover, to the rest
// of it after the other's window.
func (x *step) lose(head store.Record) {
	s := x.s
	slot := s.Bid.Slot
	if s.Bid.yields() && !s.Hold.knows(head.Claim) && !x.at.Now.Earliest.Before(s.Bid.YieldUntil) {
		s.Bid.YieldSlot = time.Time{} // Another has gone first.
	}
	over := !head.WindowEnd.After(x.at.Now.Earliest)
	stoodBy := s.Bid.stoodBy()
	if s.Bid.MissReason == WentBack {
		s.Bid.MissReason = 0 // Another has the slot now.
	}
	switch {
	case !over && x.standBy(head.WindowEnd):
	case (over || x.m.Failover > 0) && x.inDoubt(head.WindowEnd):
		x.contendLater()
		return
	default:
		x.next()
	}
	x.rival(slot, head)
	x.lost(slot, head, stoodBy)
}

// lost reports a slot that another worker has, once. A trigger's run may be this worker's own.
func (x *step) lost(slot slots.Slot, head store.Record, stoodBy bool) {
	own := x.s.Hold.knows(head.Claim) || !x.m.Single && head.Triggered() && head.InstanceID == x.m.InstanceID
	if !stoodBy && !own {
		x.note(Note{What: Lost, Slot: slot, Record: head})
	}
}

// standBy waits to claim the rest of the slot if a window that ends at end is not
// extended: in the order of the turns, from then on. It reports whether anything would
// be left before claims for the next slot open.
func (x *step) standBy(end time.Time) bool {
	s, now := x.s, x.at.Now
	opens := s.Bid.Slot.End.Add(-x.m.lead(x.m.Schedule.Next(s.Bid.Slot.Start)))
	from := x.m.Rules.StandBy(end, opens, now, x.m.Failover)
	if from.IsZero() || s.Bid.skips() {
		return false
	}
	turn := x.turn(s.Hold.WonEnd.Equal(end))
	from = later(from, now.Earliest).Add(turn)
	if yield := from.Add(x.m.lead(s.Bid.Slot)); s.Bid.yields() && yield.Before(opens) {
		from = yield // A worker that has not failed goes first.
	}
	if s.Bid.yields() {
		from = later(from, s.Bid.YieldUntil)
	}
	s.Bid.Role = Standby
	s.Bid.wait(from, timeline.Earliest)
	return true
}
