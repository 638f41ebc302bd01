package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Carried is what each record repeats from the head that it is appended to, so that
// the head alone tells it.
type Carried struct {
	DoneUntil time.Time
	Slot      time.Time // start of the slot that Attempt counts for
	Attempt   int
}

// carry repeats everything: what a record leaves out, those behind it can't know.
func carry(head store.Record) Carried {
	return Carried{DoneUntil: head.DoneUntil, Slot: head.SlotStart, Attempt: head.Attempt}
}

// attempt is the number of the attempt that a grant of a slot would be.
func (s *State) attempt(slot slots.Slot) int {
	if s.Carried.Slot.Equal(slot.Start) {
		return s.Carried.Attempt + 1
	}
	return 1
}

// Closing is what is to be told of a slot whose work has ended by itself.
type Closing struct {
	Claim     string        // of the term under which that was
	DoneUntil time.Time     // the end of the slot that is done; zero: none is
	Release   bool          // others may try
	Until     time.Duration // local reading, up to which a worker that stops tries to tell it
	Empty     int           // how often the ledger has looked empty
}

// tellLate is how long at least a worker that stops tries to tell what is done.
const tellLate = time.Minute

// finished takes in that the user's code has ended by itself.
func (x *step) finished(e Finished) {
	s, mid := &x.s, x.at.Now.Mid()
	t := s.Held
	if t.IsZero() {
		t = s.Left // It ended with its lease, or right behind it.
	}
	if t.IsZero() {
		return
	}
	slot := t.Slot
	if x.m.Continuous && t.Slot.Start.After(mid) {
		// The lease goes on into the next slot, and this one's work has ended.
		slot = x.m.Schedule.At(mid)
		s.WonEnd, s.Reaim = t.Slot.Start, x.at.Local
	}
	c := &s.Closing
	c.Claim, c.Until = t.Claim, x.at.Local+max(slot.End.Sub(mid), tellLate)
	if e.Done {
		c.DoneUntil = slot.End
	} else {
		c.Release = true
	}
	if e.Done || !x.m.Once {
		s.SkipSlot = slot.Start
	} else {
		s.YieldSlot = slot.Start
	}
	if !s.Held.IsZero() {
		why := CodeFailed
		if e.Done {
			why = CodeDone
		}
		x.expire(why)
	}
}

// closing reports that something is to be told of a slot, and may be.
func (x *step) closing() bool {
	c := &x.s.Closing
	if x.s.Stopping && x.at.Local >= c.Until {
		return false
	}
	return !c.DoneUntil.IsZero() || c.Release && !x.m.awaits(&x.s, Releasing)
}

// mostEmpty is how often a ledger may look empty to a read that is stale, before it
// is taken for lost.
const mostEmpty = 10

// closeSlot prepares the record that tells what is to be told, and reports whether
// there is one.
func (x *step) closeSlot(head store.Record) bool {
	s := &x.s
	c := &s.Closing
	if !x.closing() {
		return false
	}
	if head.Seq == 0 {
		if c.Empty++; c.Empty > mostEmpty {
			*c = Closing{} // It was lost, and with it what all others know.
		}
		x.backOff(nil)
		return false
	}
	if !c.DoneUntil.IsZero() {
		if x.s.Carried.DoneUntil.Before(c.DoneUntil) {
			s.Sent, s.Stage = x.m.Rules.Done(x.stamped(store.KindDone, head.Seq+1), head, c.DoneUntil), Sending
			return true
		}
		x.tellDone(head, c.DoneUntil) // It was told, by a record that was in doubt, or by another.
		c.DoneUntil = time.Time{}
	}
	if !c.Release || x.m.awaits(s, Releasing) {
		return false
	}
	claim := c.Claim
	*c = Closing{}
	return x.release(head, claim)
}

// told takes in that a slot is known to be done. Another may have been done
// meanwhile.
func (x *step) doneStored(r store.Record) {
	s := &x.s
	if x.at.Local-s.HeadReadAt.Local > x.m.Rules.ClaimAge {
		// So long after the head was read, the key may have been trimmed meanwhile, and
		// what landed there late is seen by nobody.
		x.reread()
		return
	}
	x.observeRecord(r)
	x.tellDone(r, r.DoneUntil)
	if !r.DoneUntil.Before(s.Closing.DoneUntil) {
		s.Closing.DoneUntil = time.Time{}
	}
	if r.Claim == s.Held.Claim && r.WindowEnd.Equal(s.Held.End) {
		s.Held.Seq = r.Seq // It is the head that the next extension is appended to.
	}
	x.reread()
}

// tellDone tells that a record says that the slot which ends at a time is done.
func (x *step) tellDone(r store.Record, end time.Time) {
	x.note(Note{What: SlotDone, Slot: x.m.Schedule.At(end.Add(-1)), Record: r})
}

// missed is the slot before one, if nobody has done its work, and it is to be done
// late.
func (x *step) missed(slot slots.Slot) slots.Slot {
	s := &x.s
	before := x.m.Schedule.At(slot.Start.Add(-1))
	done := s.Carried.DoneUntil
	if !x.m.RunMissed || done.IsZero() || !done.Before(before.End) || x.spent(before) {
		return slots.Slot{}
	}
	return before
}

// undecided puts a claim off until the slot before is over, if whether it was missed
// depends on that.
func (x *step) undecided() bool {
	s := &x.s
	if x.missed(s.Slot).IsZero() || !x.at.Now.Earliest.Before(s.Slot.Start) {
		return false
	}
	place := x.turn(x.had(s.Slot))
	s.drop()
	s.Turn, s.TurnEdge = s.Slot.Start.Add(place), timeline.Earliest
	return true
}

// spent reports that a slot was tried as often as it may be.
func (x *step) spent(slot slots.Slot) bool {
	return x.m.MaxAttempts > 0 && x.s.attempt(slot) > x.m.MaxAttempts
}

// done changes no term: whoever holds the one in the head goes on holding it.
func done(r, head store.Record, until time.Time) store.Record {
	r.Claim, r.InstanceID, r.Group, r.Token, r.Priority = head.Claim, head.InstanceID, head.Group, head.Token, head.Priority
	r.SlotStart, r.SlotEnd, r.Schedule = head.SlotStart, head.SlotEnd, head.Schedule
	r.WindowStart, r.WindowEnd = head.WindowEnd, head.WindowEnd
	r.DoneUntil, r.Attempt = later(r.DoneUntil, until), head.Attempt
	return r
}

// closed turns away from a slot that is done, or was tried often enough, and reports
// that it did.
func (x *step) closed(head store.Record) bool {
	s := &x.s
	if !x.m.Once {
		return false
	}
	spent := x.spent(s.Slot)
	switch {
	case x.m.Rules.IsDone(s.Carried, s.Slot):
		if !s.Standby && !s.SkipSlot.Equal(s.Slot.Start) {
			x.note(Note{What: Lost, Slot: s.Slot, Record: head})
		}
	case spent && x.m.Rules.MayExtend(head, x.at.Now):
		x.lose(head) // The last attempt may yet succeed.
		return true
	case spent:
		x.note(Note{What: Exhausted, Slot: s.Slot, Count: s.Carried.Attempt})
	default:
		return false
	}
	x.next()
	return true
}

// isDone goes by the end of what is done: slots of another schedule that lie before
// it are covered as well.
func isDone(head Carried, slot slots.Slot) bool {
	return !head.DoneUntil.IsZero() && !slot.End.After(head.DoneUntil)
}
