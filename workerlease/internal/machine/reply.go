package machine

import (
	"errors"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// sampled takes in that the store told its time, or didn't.
func (x *step) sampled(e Sampled) {
	s := &x.s
	if e.Err != nil {
		x.failed(Sampling, e.Err)
		x.regroup()
		return
	}
	if x.jumped {
		// Ask again, but not at once: servers that contradict each other would be
		// asked without end.
		x.backOff(nil)
		return
	}
	x.succeeded()
	s.Resample = false
	if s.Probe {
		s.Probe = false
		if s.Stage == Reading || s.Stage == Aiming {
			x.again()
		}
		s.Why = Unreachable // should the slot be missed yet
	}
}

// regroup sees to it that after an outage that outlasted the boundary, when all
// come back at once, the turns count again from then: the time is asked for
// before all else.
func (x *step) regroup() {
	s := &x.s
	s.Probe = !s.Stopping && !s.Slot.IsZero() && x.at.Now.Known() && !x.at.Now.Mid().Before(s.Slot.Start)
}

// headRead takes in the head.
func (x *step) headRead(e HeadRead) {
	s := &x.s
	if e.Err != nil {
		x.failed(ReadingHead, e.Err)
		x.regroup()
		return
	}
	x.succeeded()
	s.ReadAt = x.m.Rules.ReadAt(x.at.Now)
	records := e.Records
	if len(records) > 0 && records[0].Seq == 0 {
		x.note(Note{What: Poison, Slot: s.Slot, Record: records[0], Err: errors.New(records[0].Defect)})
		records = records[1:]
	}
	records, known := x.reachable(records)
	if !known {
		x.readHead()
		return
	}
	x.vanished(records)
	var head store.Record
	if len(records) > 0 {
		head, records = records[0], records[1:]
	}
	if s.HeadReadAt = (ReadTime{}); x.poison(head) == nil {
		s.HeadReadAt = ReadTime{Fixed: x.at.Now.Earliest, Local: x.at.Local}
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
	if s.ReadEpoch == x.at.Epoch && s.Settle.IsZero() && x.poison(head) == nil {
		s.Settle = head.WindowEnd
		if head.WindowEnd.IsZero() {
			s.Settle = x.at.Now.Earliest
		}
	}
}

// appended takes in what came of an append.
func (x *step) appended(e Appended) {
	s := &x.s
	s.Latency += (e.Took - s.Latency) / 4
	switch x.m.Rules.Outcome(e.Err) {
	case Landed:
		x.succeeded()
		x.stored(s.Sent)
	case Taken:
		x.note(Note{What: Conflict, Slot: s.Slot, Record: s.Sent, Err: e.Err})
		s.Stage = Checking
	case Refused:
		x.failed(Appending, e.Err)
		x.miss(s.Slot.End)
		x.next()
	case OutcomeUnknown:
		x.note(Note{What: Unknown, Slot: s.Slot, Record: s.Sent, Err: e.Err})
		s.Failures++
		if s.Tries > 0 || errors.Is(e.Err, store.ErrThrottled) {
			x.backOff(e.Err)
		} else {
			s.Tries++ // look at once, then ever later
		}
		s.Stage, s.OutcomeUnknown = Checking, true
	}
}

// recordRead takes in what stands at the key of Sent.
func (x *step) recordRead(e RecordRead) {
	s := &x.s
	switch {
	case errors.Is(e.Err, store.ErrNotFound) && s.OutcomeUnknown:
		x.absent()
	case errors.Is(e.Err, store.ErrNotFound):
		// Taken a moment ago, and gone: a stale read, or trimmed since.
		s.Stage = Reading
		x.backOff(nil)
	case e.Err != nil:
		x.failed(ReadingRecord, e.Err)
	case x.m.Rules.Mine(e.Record, x.m.identity(s.Sent.Claim)) && e.Record.Kind == s.Sent.Kind && !e.Record.DoneUntil.Before(s.Sent.DoneUntil):
		// (Another worker's done record repeats the same claim, for its own slot.)
		x.succeeded()
		x.stored(e.Record)
	default:
		// Somebody else's: one's own can never land there now.
		x.succeeded()
		s.OutcomeUnknown = false
		s.ReadAt = x.m.Rules.ReadAt(x.at.Now)
		x.refused(e.Record)
	}
}

// absent goes on after one's own record, whose append is in doubt, was not found.
// Absent is not failed: it may land later.
func (x *step) absent() {
	s := &x.s
	switch {
	case s.Stopping && s.Sent.Kind == store.KindGrant:
		s.drop()
	case s.Sent.Kind == store.KindRelease && s.Sent.Claim == s.Left.Claim && x.m.Rules.Resume(s.Left, s.Sent):
		s.Next = s.Left
		s.drop()
	default:
		s.Claim, s.Sent = x.m.Rules.Resend(s.Claim, s.Sent, x.at)
		s.Stage = Sending
		x.backOff(nil)
	}
}

// stored goes on after one's own record is known to be in the ledger.
func (x *step) stored(r store.Record) {
	s := &x.s
	s.OutcomeUnknown = false
	switch r.Kind {
	case store.KindGrant:
		x.confirm(r, true)
	case store.KindRelease:
		x.observeRecord(r)
		x.note(Note{What: Released, Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, Record: r})
		x.reread()
	case store.KindDone:
		x.doneStored(r)
	default:
		x.note(Note{What: Reset, Slot: s.Slot, Record: r})
		x.reread()
	}
}

// reread turns back to the head, if it was read for a claim or is to be read again.
func (x *step) reread() {
	s := &x.s
	s.Stage, s.Sent = Reading, store.Record{}
	if s.Claim.ID == "" && !x.closing() && !s.Stopping {
		s.Stage = Aiming
	}
}

// refused goes on after somebody else's record was found where one's own was
// to go.
func (x *step) refused(r store.Record) {
	s := &x.s
	switch {
	case s.Stopping && s.Sent.Kind == store.KindRelease && r.Kind != store.KindRelease && r.Claim == s.Sent.Claim && x.poison(r) == nil:
		// Another's done record, which changes nothing of the term.
		x.observeRecord(r)
		if !x.release(r, r.Claim) {
			x.reread()
		}
	case s.Sent.Kind == store.KindGrant && !s.Stopping:
		x.judge(r, nil)
	case s.Sent.Kind == store.KindGrant:
		s.drop()
	default:
		x.reread()
	}
}
