package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
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

// Closing is what is to be told of slots whose work has ended by itself.
type Closing struct {
	Claim     string     // of the tenure under which that was
	Slot      slots.Slot // the newest that is done
	DoneUntil time.Time  // its end; zero: nothing is done
	Release   bool       // others may try
}

// finished takes in that the user's code has ended by itself, for the slot of the
// tenure or, if that is so, for the one missed before it.
func (x *step) finished(e Finished) {
	s := &x.s
	t := s.Held
	if t.IsZero() {
		t = s.Left // It ended with its lease, or right behind it.
	}
	if t.IsZero() {
		return
	}
	c := &s.Closing
	c.Claim = t.Claim
	switch {
	case e.Missed:
		// Whatever came of it: it is run once.
		c.Slot, c.DoneUntil = t.Missed, t.Missed.End
		return
	case e.Done:
		c.Slot, c.DoneUntil = t.Slot, t.Slot.End
	default:
		c.Release = true
	}
	if e.Done || !x.m.Once {
		s.Spoilt = t.Slot.Start
	} else {
		s.Failed = t.Slot.Start
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
	return !c.DoneUntil.IsZero() || c.Release && !x.m.awaits(&x.s, Releasing)
}

// closeSlot prepares the record that tells what is to be told, and reports whether
// there is one.
func (x *step) closeSlot(head store.Record) bool {
	s := &x.s
	c := &s.Closing
	if head.Seq == 0 {
		// The ledger was lost, and with it what all others know.
		*c = Closing{}
		return false
	}
	if !c.DoneUntil.IsZero() {
		if head.DoneUntil.Before(c.DoneUntil) {
			s.Sent, s.Stage = x.m.Rules.Done(x.stamped(store.KindDone, head.Seq+1), head, c.Slot), Sending
			return true
		}
		c.DoneUntil = time.Time{} // Somebody has told that, or more.
	}
	if !c.Release || x.m.awaits(s, Releasing) {
		return false
	}
	claim := c.Claim
	*c = Closing{}
	return x.release(head, claim)
}

// told takes in that a slot is known to be done.
func (x *step) told(r store.Record) {
	s := &x.s
	x.see(r)
	x.tell(Note{What: SlotDone, Slot: s.Closing.Slot, Record: r})
	s.Closing.DoneUntil = time.Time{}
	if r.Claim == s.Held.Claim && r.WindowEnd.Equal(s.Held.End) {
		s.Held.Seq = r.Seq // It is the head that the next extension is appended to.
	}
	x.reread()
}

// missed is the slot before one, if nobody has done its work, and it is to be done
// late.
func (x *step) missed(slot slots.Slot) slots.Slot {
	s := &x.s
	before := x.m.Schedule.At(slot.Start.Add(-1))
	done := s.Carried.DoneUntil
	if !x.m.RunMissed || done.IsZero() || !done.Before(before.End) {
		return slots.Slot{}
	}
	return before
}

// spent reports that a slot was tried as often as it may be.
func (x *step) spent(slot slots.Slot) bool {
	return x.m.MaxAttempts > 0 && x.s.attempt(slot) > x.m.MaxAttempts
}

// done changes no tenure: whoever holds the one in the head goes on holding it.
func done(r, head store.Record, slot slots.Slot) store.Record {
	r.Claim, r.InstanceID, r.Group, r.Token, r.Priority = head.Claim, head.InstanceID, head.Group, head.Token, head.Priority
	r.SlotStart, r.SlotEnd, r.Schedule = head.SlotStart, head.SlotEnd, head.Schedule
	r.WindowStart, r.WindowEnd = head.WindowEnd, head.WindowEnd
	r.DoneUntil, r.Attempt = later(head.DoneUntil, slot.End), head.Attempt
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
	case x.m.Rules.IsDone(head, s.Slot):
		if !s.Standby && !s.Spoilt.Equal(s.Slot.Start) {
			x.tell(Note{What: Lost, Slot: s.Slot, Record: head})
		}
	case spent && x.alive(head):
		x.lose(head) // The last attempt may yet succeed.
		return true
	case spent:
		x.tell(Note{What: Exhausted, Slot: s.Slot, Count: s.Carried.Attempt})
	default:
		return false
	}
	x.next()
	return true
}

// isDone goes by the end of what is done: slots of another schedule that lie before
// it are covered as well.
func isDone(head store.Record, slot slots.Slot) bool {
	return !head.DoneUntil.IsZero() && !slot.End.After(head.DoneUntil)
}
