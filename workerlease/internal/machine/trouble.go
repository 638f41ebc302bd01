package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// A worker whose code fails in slot after slot would take slot after slot from those whose code works, and so would one
// that is fit until it has a slot. So it lets them go first for a while: it comes at the end of the turn of the lowest
// priority, and claims what nobody else has by then.

// Trouble is how the worker has failed in the slots that it had.
type Trouble struct {
	Slots int       // in a row
	Began time.Time // start of the slot in which the lease began
	Slot  time.Time // start of the newest of them
	Times int       // how often it has failed in that
	Until time.Time // start of the first slot for which the worker has its own turn again
	// Worked says that the code has worked in a slot since the worker began: what was before doesn't count.
	Worked bool
}

// mostLost bounds how many slots that code has hung through count.
const mostLost = 8

// troubled notes that the code failed in a slot: once, however often it did. The more slots it has hung
// through, the longer others go first.
func (x *step) troubled(slot slots.Slot, why Reason) {
	t, worked, lost := &x.s.Trouble, slot, 1
	if why == Stalled {
		worked = x.m.Schedule.At(x.at.Now.Mid().Add(x.s.Eligibility.Progressed - x.at.Local)) // It has done nothing since.
		for each := worked; each.Start.Before(slot.Start) && lost < mostLost; each = x.m.Schedule.Next(each.Start) {
			lost++
		}
	}
	if x.lasted(worked) {
		t.Slots, t.Worked = 0, true
	}
	if t.Slots > 0 && t.Slot.Equal(slot.Start) {
		t.Times++
		return
	}
	t.Slots, t.Slot, t.Times = t.Slots+1, slot.Start, 1
	back := lost * x.m.Rules.StepBack(t.Slots)
	if back == 0 {
		return
	}
	t.Until = x.m.skip(slot, back)
	x.note(Note{What: SteppedBack, Slot: slot, Until: t.Until, Count: t.Slots})
	if x.s.Bid.Slot.Start.After(slot.Start) {
		x.replan() // Its turn was that of its priority.
	}
}

// yield leaves the rest of a slot to others after the code has failed in it. If the worker takes over rests itself, it
// claims this one again, if nobody else has taken it by then: after a lead, and after twice as long each further time.
func (x *step) yield(slot slots.Slot) {
	b, now := &x.s.Bid, x.at.Now.Mid()
	again := now.Add(x.m.Rules.Again(x.m.lead(slot), x.s.Trouble.Times, slot.Length()))
	if x.m.Failover == 0 || !again.Before(x.m.opens(x.m.Schedule.Next(slot.Start))) {
		b.SkipSlot = slot.Start
		return
	}
	b.YieldSlot, b.YieldUntil = slot.Start, again
}

// faltered notes that the work of the slot has failed under a lease that goes on.
func (x *step) faltered(e Faltered) {
	h := &x.s.Hold
	if !h.holding() || h.Held.Claim != e.Claim {
		return
	}
	slot := x.inSlot(h.Held)
	if !x.s.Report.reported(h.Held, slot) {
		x.report(h.Held, slot, true, x.m.Single, e.Work) // A single claim ends with its code.
	}
	x.troubled(slot, CodeFailed)
	x.s.Trouble.Began = x.m.Schedule.Next(slot.Start).Start // With that slot the work begins anew.
}

// inSlot is the slot of a term that is under way: the lease may reach into the next one.
func (f facts) inSlot(t Term) slots.Slot {
	if now := f.m.Schedule.At(f.at.Now.Mid()); now.Start.Before(t.Slot.Start) {
		return now
	}
	return t.Slot
}

// cut ends the lease of code that has taken too long, which has failed by that.
func (x *step) cut(why Reason, w Work) {
	x.fault(w)
	x.stepDown(why)
	x.s.Hold.Cut = true
	x.triesAgain(x.s.Hold.Left)
}

// fault takes in that the code has failed by a panic, or by taking too long.
func (x *step) fault(w Work) {
	held := x.s.Hold.Held
	if slot := x.inSlot(held); !x.s.Report.reported(held, slot) {
		x.report(held, slot, true, true, w)
	}
}

// failed reports that the work of a slot has failed, though its lease went on.
func (t *Trouble) failed(slot slots.Slot) bool { return t.Slots > 0 && t.Slot.Equal(slot.Start) }

// skip is the start of the slot that comes so many slots after the next one.
func (m *Machine) skip(slot slots.Slot, count int) time.Time {
	next := m.Schedule.Next(slot.Start)
	for range count {
		next = m.Schedule.Next(next.Start)
	}
	return next.Start
}

// lasted reports that code which is no job has gone on through a slot at least, from the end of the one in which it began.
func (f facts) lasted(slot slots.Slot) bool {
	return !f.m.Once && f.m.Schedule.Next(f.s.Trouble.Began).Start.Before(slot.Start)
}

// works notes that the code of a slot worked.
func (x *step) works() { x.s.Trouble = Trouble{Began: x.s.Trouble.Began, Worked: true} }

// stepBack is for how many slots a worker lets others go first after failures in so many slots in a row:
// so who always fails has less than a tenth of the slots.
func stepBack(failures int) int {
	if failures < 3 {
		return 0
	}
	return 1 << min(failures-3, 4)
}
