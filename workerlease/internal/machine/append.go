package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// send appends the bid's record, if that is still right.
func (x *step) send() {
	s := x.s
	switch {
	case s.Bid.extends() && !x.m.Rules.Prolong(s.Hold.Held, s.Bid.Record):
		x.again()
	case s.Bid.extends() && s.Retries.Failures > 0 && x.byRead():
		x.readHead() // The store may have lost the record below meanwhile.
	case s.Bid.grants() && x.aged():
		x.renewClaim()
	case s.Bid.Record.Kind == store.KindOutcome && !x.room(Appending) && !x.ownWord():
		x.aimAgain() // There is no time for it now.
	case s.Bid.grants() && !s.Bid.OutcomeUnknown && s.Bid.ReadEpoch != s.Clock.Epoch:
		x.again() // Made by a clock that has jumped since.
	case x.at.Age > x.m.Rules.Fresh && s.Bid.Record.Kind != store.KindOutcome:
		x.ask(Sampling, Sample{})
	default:
		x.append()
	}
}

// ownWord reports that the record says what came of the work of the term below it, which this worker has left: without that, others
// would take it for dead.
func (f facts) ownWord() bool {
	r, b := &f.s.Report, &f.s.Bid
	return !f.s.Hold.holding() && f.s.Hold.Next.IsZero() && r.in(b.Record) && b.Below.Claim == r.Claim
}

// append sends the bid's record, above the one that it was made for.
func (x *step) append() {
	a := Append{Record: x.s.Bid.Record}
	if prev := x.s.Bid.Below; x.m.Follows && x.m.Rules.Knows&ByAppend != 0 && store.CheckAfter(a.Record, prev) == nil {
		a.Prev = prev
	}
	x.ask(Appending, a)
}

// appended takes in the reply to an append.
func (x *step) appended(e Appended) {
	s := x.s
	outcome := x.m.Rules.Outcome(e.Err)
	if outcome == NotStored && s.Bid.OutcomeUnknown {
		outcome = OutcomeUnknown // It was sent before, and that may be stored.
	}
	if s.Bid.Record.Kind == store.KindOutcome {
		x.outcomeSent(outcome, e)
		return
	}
	s.Bid.Latency += (e.Took - s.Bid.Latency) / 4
	switch outcome {
	case Landed:
		s.Retries.over()
		s.Retries.Rereads = 0
		x.stored(s.Bid.Record)
	case Taken:
		x.note(Note{What: Conflict, Slot: s.Bid.Slot, Record: s.Bid.Record, Err: e.Err})
		s.Bid.Stage = Checking
		s.sent(s.Bid.Record)
	case Refused:
		x.failed(Appending, e.Err)
		x.miss(s.Bid.Slot.End)
		x.next()
	case Unfounded:
		x.refusedAbove(e.Err)
	case NotStored:
		// There is nothing to read back. The same record may go out again, as after an append
		// that was lost.
		x.failed(Appending, e.Err)
		s.Bid.Stage = Sending
		if s.Stopping && s.Bid.grants() {
			s.Bid.drop()
		}
	case OutcomeUnknown:
		s.Retries.Answer = answer(Appending, e.Err)
		x.note(Note{What: Unknown, Slot: s.Bid.Slot, Record: s.Bid.Record, Err: e.Err})
		s.Retries.Failures++
		if s.Retries.Tries > 0 || errors.Is(e.Err, store.ErrThrottled) {
			x.backOff(e.Err)
		} else {
			s.Retries.Tries++ // Read back at once, then less and less often.
		}
		s.Bid.Stage, s.Bid.OutcomeUnknown = Checking, true
		s.sent(s.Bid.Record)
	}
}

// recordRead takes in what stands at the key of the bid's record.
func (x *step) recordRead(e RecordRead) {
	s := x.s
	switch {
	case errors.Is(e.Err, store.ErrNotFound) && s.Bid.OutcomeUnknown:
		x.absent()
	case errors.Is(e.Err, store.ErrNotFound):
		// Taken a moment ago, and gone: a stale read, or trimmed since; or only a minority of the
		// store's servers has it, and no read shows it until they have elected a primary.
		s.Bid.Stage, s.Bid.Outage = Reading, true
		x.lookAgain()
	case e.Err != nil:
		x.failed(ReadingRecord, e.Err)
	case x.isSent(e.Record):
		s.Retries.over()
		s.Retries.Rereads = 0
		x.stored(e.Record)
	default:
		// It is another worker's: one's own can never be stored there now.
		s.Retries.over()
		s.Bid.OutcomeUnknown = false
		s.View.ReadAt = ReadAt(x.at.Now)
		if x.ledger().Poison(e.Record) == nil && !x.foreign(e.Record) {
			x.know(e.Record)
		}
		s.View.HeadReadAt.Fixed = time.Time{} // What was read then is not the head any more.
		x.refused(e.Record)
	}
}

// isSent reports that a record is the one that was sent. Another worker's done record
// repeats the same claim, for its own slot.
func (f facts) isSent(r store.Record) bool {
	sent := &f.s.Bid.Record
	return f.m.Rules.Mine(r, f.m.identity(sent.Claim)) && r.Kind == sent.Kind && !r.DoneUntil.Before(sent.DoneUntil) &&
		(r.Kind != store.KindDone || f.m.IsDone(f.m.Rules.Carry(r), f.s.Closing.Done))
}

// absent goes on after one's own record, the outcome of whose append is unknown, was
// not found. Absent is not failed: it may be stored later.
func (x *step) absent() {
	s := x.s
	switch sent := s.Bid.Record; {
	case s.Stopping && s.Bid.grants():
		s.Bid.drop()
	case sent.Kind == store.KindRelease && sent.Claim == s.Hold.Left.Claim && x.m.Rules.Resume(s.Hold.Left, sent):
		s.Hold.Next = s.Hold.Left
		s.Bid.drop()
	default:
		s.Bid.Claim, s.Bid.Record = x.m.Rules.Resend(s.Bid.Claim, sent, x.at)
		s.Bid.Stage = Sending
		x.backOff(nil)
	}
}

// stored goes on after one's own record is known to be in the ledger.
func (x *step) stored(r store.Record) {
	s := x.s
	unknown := s.Bid.OutcomeUnknown
	s.Bid.OutcomeUnknown = false
	s.told(r)
	x.know(r)
	switch r.Kind {
	case store.KindGrant:
		x.confirm(r, true)
		if unknown && x.m.Rules.Defers && x.m.mustLook(&s.Hold) {
			// A worker that has done the work may not have been able to record that, either.
			s.Retries.Until = x.at.Local + x.m.early()
		}
	case store.KindRelease:
		x.observeRecord(r)
		s.Clock.SettleAt = time.Time{} // Another head may be over sooner.
		x.note(Note{What: Released, Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, Record: r})
		if !x.tryAgain(r) && !x.turnBack(r) {
			x.reread()
		}
		if s.Hold.WonEnd.After(r.WindowEnd) {
			s.Hold.WonEnd = r.WindowEnd
		}
	case store.KindDone:
		x.doneStored(r)
	case store.KindOutcome:
		x.outcomeStored(r)
	default:
		x.note(Note{What: Reset, Slot: s.Bid.Slot, Record: r})
		x.reread()
	}
}

// refused goes on after another worker's record was found where one's own was to go.
func (x *step) refused(r store.Record) {
	s := x.s
	sent := s.Bid.Record
	switch {
	case (x.foreign(r) || r.Kind == store.KindReset) && (!s.Stopping || !s.Bid.grants()):
		x.reread() // It is judged by more than its neighbor.
	case (s.Stopping || r.Kind != store.KindGrant) && sent.Kind == store.KindRelease && r.Kind != store.KindRelease && r.Claim == sent.Claim && x.ledger().Poison(r) == nil:
		// Another worker's done record or outcome, or an order, which change nothing of the term.
		x.observeRecord(r)
		s.told(r) // It may be one's own outcome, of whose append the reply was lost.
		if !x.releasable(r, r.Claim) {
			x.reread()
			return
		}
		x.release(r)
	case s.Bid.grants() && !s.Stopping && r.Seq > max(s.View.HeadReadAt.Seq, s.Hold.Held.Seq)+1:
		// It isn't the first record after the newest one known. It may be one of many.
		x.reread()
		x.lookAgain()
	case s.Bid.grants() && !s.Stopping:
		if x.overridden([]store.Record{r}) && s.Bid.Role == Extender {
			x.observeRecord(r)
			x.again()
			return
		}
		x.judge(r, nil)
	case s.Bid.grants():
		s.Bid.drop()
	default:
		x.reread()
	}
}

// reread turns back to the head, if it was read for a claim or is to be read again.
func (x *step) reread() {
	s := x.s
	s.Bid.Stage, s.Bid.Record, s.Bid.Below = Reading, store.Record{}, store.Record{}
	if s.Bid.Claim.ID == "" && !x.closing() && !s.Stopping {
		s.Bid.Stage = Aiming
	}
}

// foreign reports that no worker can have appended a record that was found where one's own
// was to go.
func (f facts) foreign(r store.Record) bool {
	b := &f.s.Bid
	return b.Record.Kind != store.KindReset && f.m.Rules.Contradicts(b.Below, r) != nil
}
