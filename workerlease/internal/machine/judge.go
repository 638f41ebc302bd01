package machine

import (
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file decides what a head means for the bid, in phases: what the worker's own term is, what its
// group's, what is not to be claimed, and what is. The questions that they ask are in facts.go, in their order.

// judge decides what the head means for the bid; below are older records, if they
// were read. The first case that applies settles it.
func (x *step) judge(head store.Record, below []store.Record) {
	s := x.s
	s.View.Rival = Rival{}
	if x.aged() {
		x.renewClaim()
		return
	}
	switch why := x.ledger().Defect(append([]store.Record{head}, below...)); {
	case why == nil:
	case !x.m.Once && x.arriving():
		s.Bid.Stage = Aiming // Who has no job watches poison from its turn on.
		return
	default:
		x.watch(head, below, why)
		return
	}
	s.View.Watch = Watch{}
	x.observeRecord(head)
	x.superseded(head, below)
	x.heedOrders()
	x.saidBefore(head, below)
	x.unattended(head)
	x.compareSlots(head, below)
	x.compareWork(head)
	x.lookBlocked(head)
	if x.closeSlot(head) {
		return // What has ended is recorded before anything else.
	}
	switch {
	case s.Bid.Claim.ID == "":
		x.noClaim(head, below)
	case x.unsure() && !x.mayGoOn(head):
		x.standBack(head)
	case x.ownTerm(head), x.groupsTerm(head), x.notToClaim(head, below):
	default:
		x.claimAfter(head, below)
		if s.Bid.Stage == Sending && s.Bid.Record.Kind == store.KindGrant {
			s.Bid.Dead = x.dead(head, below)
			s.Bid.Kept, s.Bid.Passed = x.passed(head)
		}
	}
}

// noClaim goes on from a head that was read for another reason than to claim: it may tell what came of work.
func (x *step) noClaim(head store.Record, below []store.Record) {
	s := x.s
	if r := x.tellable(); x.telling == nil && r == &s.Report && r.Key == 0 && x.room(Appending) {
		x.telling = r
		x.try(r)
	}
	switch {
	case x.telling != nil && x.tell(x.telling, head, below):
	case s.Bid.MissReason == Poisoned:
		x.again() // The poison is gone.
	default:
		s.Bid.Stage = Aiming // The head was read to close a slot, and there is nothing to record.
	}
}

// ownTerm reports that the head is of this worker's own term, and goes on with that.
func (x *step) ownTerm(head store.Record) bool {
	s := x.s
	held := s.Hold.Held
	grant, granted := x.granted(head)
	switch {
	case x.goesOn(head) && granted && head.WindowEnd.After(held.End):
		x.confirm(grant, true) // The outcome of the extension was unknown until now.
	case x.goesOn(head) && x.extendable(head) && x.intoNext() && !x.runsOn(held) && x.heldBack():
	case x.goesOn(head) && x.extendable(head):
		s.Bid.send(x.extension(held, head.Seq), head)
	case granted && x.m.Rules.Mine(head, x.m.identity(s.Bid.Claim.ID)):
		x.confirm(grant, true)
	default:
		return false
	}
	return true
}

// groupsTerm reports that the head is of a term that this worker joins, or of one of its group's that
// stands in its way.
func (x *step) groupsTerm(head store.Record) bool {
	grant, granted := x.granted(head)
	switch {
	case granted && x.joins(grant):
		x.confirm(grant, false)
	case granted && x.inTheWay(head):
		x.release(head)
	default:
		return false
	}
	return true
}

// granted is the grant of the term in the head, if its work isn't over.
func (f facts) granted(head store.Record) (grant store.Record, ok bool) {
	grant, ok = f.m.Rules.Granted(head)
	return grant, ok && !f.closed(head)
}

// notToClaim reports that the slot is not to be claimed, or not yet, and turns to what is.
func (x *step) notToClaim(head store.Record, below []store.Record) bool {
	s := x.s
	retryAt := x.retryAt(head, below)
	switch {
	case s.Bid.Role == Joiner:
		x.next()
	case s.Draining:
		x.next() // What is held is extended, and nothing more is claimed.
	case x.m.Once && x.jobIsOver(head, below):
	case x.m.Once && x.mayBeDone(head):
		s.Bid.wait(x.at.Now.Earliest.Add(x.m.early()+x.turn(false)), timeline.Earliest)
		s.Bid.Outage, s.Bid.Awaited = false, s.View.Carried.attempt(x.workAfter(head))
	case x.at.Now.Earliest.Before(retryAt):
		x.postpone(retryAt, x.workAfter(head))
	case x.undecided(head), x.runsInto(head):
		s.Bid.wait(s.Bid.Slot.Start.Add(x.startTurn()), timeline.Earliest)
	default:
		return false
	}
	return true
}

// jobIsOver reports that no attempt at the job of the slot is left, or needed, and turns to the next one.
func (x *step) jobIsOver(head store.Record, below []store.Record) bool {
	s := x.s
	switch {
	case x.m.IsDone(s.View.Carried, s.Bid.Slot):
		if !s.Bid.stoodBy() && !s.Bid.skips() {
			x.note(Note{What: Lost, Slot: s.Bid.Slot, Record: head})
		}
		x.next()
	case !x.exhausted(s.Bid.Slot):
		return false
	case x.m.Rules.MayExtend(head, x.at.Now):
		x.lose(head) // The last attempt may yet succeed.
	default:
		d := x.dead(head, below)
		if d.Holder != "" && x.hearsOut(d) {
			return true
		}
		x.tellDead(d)
		x.giveUp(s.Bid.Slot, s.View.Carried.failed(s.Bid.Slot))
		x.next()
	}
	return true
}

// claimAfter claims the window after the head, if that leaves time to work and
// nobody may still extend the term before it.
func (x *step) claimAfter(head store.Record, below []store.Record) {
	s, now := x.s, x.at.Now
	start := x.m.Rules.Start(s.Bid.Claim, head)
	soon := start.Add(-x.m.Rules.Ahead / 2)
	switch {
	case x.m.Once && x.work(start).IsZero():
		x.startsTooLate(head, below)
	case x.outlivedClaim():
		x.again() // It could not be sent for so long; another one has time.
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
