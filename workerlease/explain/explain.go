package explain

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Question is what Explain is asked. All times are store time.
type Question struct {
	// At is the time that is asked about, and Now that of the store's clock. Now may be before At.
	At, Now time.Time
	// Records are those of one worker type without gaps, as history.Read takes them: the newest, or
	// at least up to one that begins after the slot. To know who had the slot before, they need to
	// reach back to that.
	Records []store.Record
	// Presences are those of the worker type in the roster; nil if there are none, or it isn't kept.
	Presences []store.Presence
}

// When says how a slot lies to the store's time.
type When string

// The answers.
const (
	Past   When = "past"
	Now    When = "now"
	Future When = "future"
)

// Explanation is who had a slot, and why others did not.
type Explanation struct {
	At   time.Time
	When When
	// Slot is the one that At is in. It is zero if it isn't known, because no schedule can be read.
	Slot slots.Slot
	// Triggered says that a trigger asked for the run: Slot is the time in which it could begin, and none of the schedule.
	Triggered bool
	// Unread says that At is before all records that were read.
	Unread bool
	// Terms are those that had a part of the slot, the oldest first, or have claimed it.
	Terms []history.Entry
	// Holder is the one whose lease was in force at At, also for another slot, which its job was too long for or which
	// it does late; nil if there is none.
	Holder *history.Entry
	// Skipped is set if nobody began the slot, because the job still ran for an earlier one, or its worker died in that run.
	Skipped *history.Entry
	// Ran is what that job had of its own slot, if Skipped is set and it was read; else nil.
	Ran *history.Entry
	// Done says that the work of the slot is recorded as done, and Failed that it failed.
	Done, Failed bool
	// Nobody has the reasons why nobody had the slot, the surest first; nil if somebody had a part of
	// it, or if it isn't over and has not begun.
	Nobody []Cause
	// Gap is from the start of the first to the end of the last of the slots in a row that nobody
	// had, of which this is one, and GapSlots their number; zero if somebody had it.
	Gap      slots.Slot
	GapSlots int
	// Lost are records that the store has lost, as workers have said since, whose leases were in the slot.
	Lost []store.Lost
	// Orders are those of operators that were in force when the slot was decided, or at At if the slot isn't known. Until is when
	// one ended, also if that was early.
	Orders []store.Order
	// InForce are those in force at At. One that came after the slot was decided may be why nobody had the rest of it.
	InForce []store.Order
	// Asked are those by which operators asked who had the slot to release it.
	Asked []store.Order
	// Workers are all that are known: those of the roster, and those that had the slot without
	// being in it, by InstanceID.
	Workers []Verdict
}

// Cause is a reason why nobody had a slot.
type Cause struct {
	Reason Reason
	// Order is the pause, or that of a drained host; nil if another reason, or if it isn't in the records.
	Order *store.Order
	// Record is the one that couldn't be obeyed, or left nothing to claim, and Detail why.
	Record store.Record
	Detail string
	// Workers are those that say so.
	Workers []string
}

// Explain answers a question.
func Explain(q Question) Explanation {
	x := asked{Question: q, rows: history.Read(q.Records, q.Now, nil)}
	x.e.At = q.At
	x.findSlot()
	x.findTerms()
	x.findLost()
	x.findOrders()
	for _, p := range q.Presences {
		x.e.Workers = append(x.e.Workers, x.judge(p))
	}
	x.addHolders()
	slices.SortStableFunc(x.e.Workers, byInstance)
	x.whyNobody()
	return x.e
}

// asked is a question on its way to an answer.
type asked struct {
	Question

	rows   []history.Entry
	before *history.Entry // the newest term before the slot
	e      Explanation
}

// contested is the term to which others lost: the holder's, or else the first of the slot.
func (x *asked) contested() *history.Entry {
	switch {
	case x.e.Holder != nil && x.e.Holder.Slot == x.e.Slot:
		return x.e.Holder
	case len(x.e.Terms) > 0:
		return &x.e.Terms[0]
	}
	return nil
}

// decided is when it was decided who has the slot: when its claim was fixed, or else at its start.
func (x *asked) decided() time.Time {
	if h := x.contested(); h != nil && h.ClaimKnown {
		return h.Slot.Start.Add(h.Claimed)
	}
	return x.e.Slot.Start
}
