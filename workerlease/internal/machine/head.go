package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is the way of a head that was read, from top to bottom: headRead takes it in,
// judge decides, and the functions after it are the ways that branch off there. The
// questions that judge asks are in facts.go, in its order.

// headRead takes in the newest records of the ledger.
func (x *step) headRead(e HeadRead) {
	s := x.s
	x.telling, s.Report.Looking = s.Report.Looking, false
	if e.Err != nil {
		s.Hold.Looking = false
		if x.telling {
			x.lookedInVain(e.Err)
			return
		}
		if x.looking() {
			x.lookFailed(ReadingHead, e.Err)
			return
		}
		x.failed(ReadingHead, e.Err)
		x.regroup()
		return
	}
	s.Bid.Outage = s.Bid.Outage || s.Retries.Failures > 0
	s.Retries.over()
	s.View.ReadAt = ReadAt(x.at.Now)
	x.hinted, s.Hint.Looking = s.Hint.Looking, false
	records, enough := x.reachable(x.readable(e.Records))
	if !enough || x.hidesGrant(records) || x.hidesTerm(records) {
		s.Report.Looking = x.telling
		x.readHead()
		return
	}
	if x.overridden(records) && s.Bid.Role == Extender && !s.Hold.Looking && !s.Stopping {
		x.again()
		return
	}
	x.checkLastGrant(records)
	obeyed := x.defect(records) == nil
	var head store.Record // The zero Record is an empty ledger.
	if len(records) > 0 {
		head, records = records[0], records[1:]
	}
	if obeyed {
		x.recount(head, records)
	}
	if s.View.HeadReadAt = (ReadTime{}); obeyed && head.Seq >= max(s.Hold.Held.Seq, s.Hold.Next.Seq) { // else the read is stale
		s.View.HeadReadAt = ReadTime{Fixed: x.at.Now.Earliest, Local: x.at.Local, Seq: head.Seq}
	}
	if s.Hold.Looking {
		if obeyed && head.Orders != "" && head.Seq >= s.Hold.Next.Seq { // A stale one has what was tried and done before.
			x.observeRecord(head)
			x.heedOrders()
		}
		x.looked(head, obeyed)
		return
	}
	if s.Stopping {
		// A read from before the stop may come while the user's code still runs.
		if !x.m.awaits(s, Releasing) {
			if obeyed {
				x.observeRecord(head)
			}
			x.surrender(head, records, obeyed)
		}
		return
	}
	x.settle(head, records)
	if x.hinted && obeyed {
		head = x.m.Rules.Hinted(head, x.at.Now)
		if x.ranOut(head) {
			return
		}
	}
	x.judge(head, records)
}

// judge decides what the head means for the bid; below are older records, if they
// were read. The first case that applies settles it.
func (x *step) judge(head store.Record, below []store.Record) {
	s := x.s
	s.View.Rival = Rival{}
	if x.aged() {
		x.renewClaim()
		return
	}
	if why := x.defect(append([]store.Record{head}, below...)); why != nil {
		x.watch(head, below, why)
		return
	}
	s.View.Watch = Watch{}
	x.observeRecord(head)
	x.superseded(head, below)
	x.heedOrders()
	x.compareSchedule(head)
	x.lookBlocked(head)
	if x.closeSlot(head) {
		return // What has ended is recorded before anything else.
	}
	if s.Bid.Claim.ID == "" && !x.telling && s.Report.Key == 0 && x.tellable() && x.room(Appending) {
		x.telling = true // The head was read for another reason.
		x.try()
	}
	if s.Bid.Claim.ID == "" && x.telling && x.tell(head, below) {
		return
	}
	held, retryAt := s.Hold.Held, x.retryAt(head)
	granted, group := head.Kind == store.KindGrant, underNotes(head, below)
	switch {
	case s.Bid.Claim.ID == "" && s.Bid.MissReason == Poisoned:
		x.again() // The poison is gone.
	case s.Bid.Claim.ID == "":
		s.Bid.Stage = Aiming // The head was read to close a slot, and there is nothing to record.

	// The worker's own term, or its group's.
	case x.goesOn(head) && granted && head.WindowEnd.After(held.End):
		x.confirm(head, true) // The outcome of the extension was unknown until now.
	case x.goesOn(head) && x.extendable(head) && x.intoNext() && x.heldBack():
	case x.goesOn(head) && x.extendable(head):
		s.Bid.send(x.extension(held, head.Seq), head)
	case granted && x.m.Rules.Mine(head, x.m.identity(s.Bid.Claim.ID)):
		x.confirm(head, true)
	case x.joins(group, head):
		x.confirm(group, false)
		if group.Seq != head.Seq {
			x.observeRecord(head) // It has what was said since.
		}
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
	case x.m.Once && x.mayBeDone(head):
		s.Bid.wait(x.at.Now.Earliest.Add(x.m.early()+x.turn(false)), timeline.Earliest)
		s.Bid.Outage, s.Bid.Awaited = false, s.View.Carried.attempt(s.Bid.Slot)
	case x.at.Now.Earliest.Before(retryAt):
		x.postpone(retryAt)
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
	case !s.Bid.Narrowed && x.m.Rules.Samples&IfWide != 0 && !x.worth(start, s.Bid.Claim.End) && x.worthIfKnown(start, s.Bid.Claim.End):
		s.Bid.Narrowed = true
		x.ask(Sampling, Sample{}) // The newest sample may have been slow.
	case !x.worth(start, s.Bid.Claim.End) && head.WindowEnd.After(s.Bid.Slot.Start):
		x.lose(head)
	case !x.worth(start, s.Bid.Claim.End) && x.inDoubt(s.Bid.Slot.Start):
		x.contendLater()
	case !x.worth(start, s.Bid.Claim.End):
		x.miss(s.Bid.Slot.End)
		x.next()
	case x.mayExtend(start, head):
		x.lose(head)
	case x.heldBack():
	case x.m.Rules.Gap(start, head, now):
		turn := head.WindowEnd
		switch {
		case x.hinted:
			turn = turn.Add(x.hintTurn(2))
		case x.m.Failover > 0:
			turn = turn.Add(x.turn(false)) // All come at once.
		}
		s.Bid.wait(turn, timeline.Earliest)
	case now.Earliest.Before(soon):
		// The head ends late in the slot, or the time is quite uncertain: a claim that
		// far ahead could be poison to others. Come again nearer to it.
		s.Bid.wait(soon, timeline.Earliest)
	case x.m.unfitFor(s, Claiming):
		x.again()
		s.Eligibility.Looked = s.Bid.Slot.Start
	default:
		s.Bid.send(x.grant(head, start), head)
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
	switch done := v.Carried.DoneUntil; {
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

// compareSchedule reports a head that was written under another schedule, once.
func (x *step) compareSchedule(head store.Record) {
	v, theirs := &x.s.View, head.Schedule
	if head.Kind == store.KindGrant && theirs != "" && theirs != x.m.Schedule.String() && theirs != v.Mismatch {
		v.Mismatch = theirs
		x.note(Note{What: Mismatch, Slot: x.s.Bid.Slot, Record: head})
	}
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
	t := x.m.Rules.Term(r, own, s.Bid.Slot)
	if own && r.DoneUntil.Equal(s.Bid.Missed.End) {
		t.Missed = s.Bid.Missed
	}
	s.Hold.Next, s.Hold.WonEnd, s.Hold.WonSeq, s.Hold.WonSlot = t, t.End, r.Seq, s.Bid.Slot.End
	s.Hold.Looked, s.Hold.Narrowed = false, false
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
	held.Seq, held.Slot, held.End = r.Seq, s.Bid.Slot, r.WindowEnd
	x.do(Extend{*held})
	x.note(Note{What: Extended, Slot: s.Bid.Slot, Record: r})
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
	slot, role := s.Bid.Slot, s.Bid.Role
	over := !head.WindowEnd.After(x.at.Now.Earliest)
	switch {
	case !over && x.standBy(head.WindowEnd):
	case (over || x.m.Failover > 0) && x.inDoubt(head.WindowEnd):
		x.contendLater()
		return
	default:
		x.next()
	}
	x.rival(slot, head)
	if role != Standby && !s.Hold.knows(head.Claim) {
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
	s.Bid.Role = Standby
	s.Bid.wait(from, timeline.Earliest)
	return true
}
