package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// View is what a worker knows of the ledger.
type View struct {
	HeadReadAt ReadTime
	ReadAt     time.Time // Latest(now) right after the head was read
	Asked      int       // the number of records that the last read asked for
	Depth      int       // the least number that the next read asks for

	Carried   Carried
	Levers    Levers    // by the orders that it has
	Preferred time.Time // when the newest preference was ordered that was heard of
	Unheeded  bool      // it has not come after all others for that yet
	Behind    time.Time // up to when it lets them
	LastGrant Grant     // the newest grant that was won or joined, until a read has shown it
	Mismatch  Mismatched
	OtherWork [4]string // of workers that do something else, as they say: the newest first

	Rival       Rival
	Watch       Watch
	Known       Known
	Loss        Loss
	Floor       int64     // the highest token of a record that was lost
	History     string    // the name that the store's history has
	Unsure      time.Time // up to when others may work by what was lost when that changed
	Renamed     time.Time // Latest(now) when it was noticed that it had
	Seen        Seen
	Block       Block
	Dead        string    // the claim of the newest attempt that was reported as lost
	GivenUp     time.Time // start of the newest slot of a job that was reported as given up
	Missed      time.Time // start of the newest slot of a job that was reported as missed
	MissedFrom  time.Time // start of the oldest of those that were reported since one was begun: what was kept back may come before it
	Judged      bool      // a head that can be obeyed was judged
	Arrived     bool      // the worker has looked whether to read the head at its start
	Attended    bool      // what the ledger shows of the slots for which the worker wasn't there was looked at
	Away        Reason    // why it wasn't; 0: it had not started
	AwayTo      time.Time // start of the newest of them that passed since it had started; zero: there is none
	Unreachable int64     // seq of the newest unreachable record, 0 if there is none
}

// ReadTime is when the worker last read the head and found that it can be obeyed. An
// extension that is appended without reading the head again was fixed then.
type ReadTime struct {
	Fixed time.Time // Earliest(now)
	Local time.Duration
	Seq   int64 // of the head
}

// Block is a record that can be obeyed, and leaves nothing to claim for long.
type Block struct {
	Seq   int64 // 0: there is none
	Until time.Time
	Done  bool // slots up to then are recorded as done; else a window lasts until then
}

// Mismatched is the newest grant of another worker that had another slot.
type Mismatched struct {
	Schedule     string // of the other worker; empty: there was none
	Holder       string
	Ours, Theirs slots.Slot
}

// OtherSlot is the slot of a schedule in which that of a grant starts, and whether it is another
// one: by another schedule, or another release of the tz database. What texts say doesn't matter.
func OtherSlot(s slots.Schedule, r store.Record) (ours slots.Slot, differs bool) {
	theirs := slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	if r.Kind != store.KindGrant || r.Triggered() || !theirs.Start.Before(theirs.End) {
		return slots.Slot{}, false
	}
	ours = s.At(theirs.Start)
	return ours, !ours.IsZero() && (!ours.Start.Equal(theirs.Start) || !ours.End.Equal(theirs.End))
}

// Watch is poison that is being watched.
type Watch struct {
	Seq   int64
	Since time.Time     // Latest(now) when it was first seen
	From  time.Duration // the local reading then, or when another worker has recorded a sighting
	Over  time.Duration // the local reading at which it may be superseded
}

// Seen is the poison of which a sighting was asked for last. Stale reads hide it now and then.
type Seen struct {
	Seq   int64
	Asked time.Duration // the local reading then
	From  time.Duration // the local reading since when it was seen
	After time.Time     // the reading of the head for the record below it: it is younger than that
}

// Carried is what each record repeats from the head that it is appended to, so that
// reading the head is enough.
type Carried struct {
	DoneUntil time.Time
	Done      store.Done // the newest slot that is done; zero: it isn't known
	Slot      time.Time  // start of the slot that Attempt counts for
	Attempt   int
	Spared    int    // of these, don't count
	Orders    string // of operators
	Seq       int64
	// Begun and Triggered are when the term in the head began, and its end, if it is that of a trigger's run; Failed says that the head
	// gives that back since it has failed.
	Begun, Triggered time.Time
	Failed           bool
}

// tried reports that work of a slot was attempted, and not only that of a trigger.
func (c Carried) tried() bool { return c.Attempt > 0 && c.Triggered.IsZero() }

// claimed reports that a slot, or one before it, was claimed by some worker, though it may have been given back.
func (c Carried) claimed(slot slots.Slot) bool {
	return !c.DoneUntil.IsZero() || c.Triggered.IsZero() && !c.Slot.IsZero() && !c.Slot.After(slot.Start)
}

// Undone is when the slot starts that was attempted last, if none is done yet; zero: nothing was attempted.
func (c Carried) Undone() (start time.Time) {
	if c.tried() && c.DoneUntil.IsZero() {
		start = c.Slot
	}
	return start
}

// attempt is the number of the attempt that a grant of a slot would be.
func (c Carried) attempt(slot slots.Slot) int {
	if c.Slot.Equal(slot.Start) {
		return c.Attempt + 1
	}
	return 1 + askedBy(c.Orders, slot).Attempts
}

// failed is how many attempts at a slot count: those that nobody has ended in order.
func (c Carried) failed(slot slots.Slot) int {
	if c.Slot.Equal(slot.Start) {
		return c.Attempt - c.Spared
	}
	o := askedBy(c.Orders, slot)
	return o.Attempts - o.Spared
}

// spared is how many don't.
func (c Carried) spared(slot slots.Slot) int { return c.attempt(slot) - 1 - c.failed(slot) }

// carry repeats everything: whatever a record leaves out is lost to the records after
// it.
func carry(head store.Record) Carried {
	c := Carried{DoneUntil: head.DoneUntil, Done: known(head), Slot: head.SlotStart, Attempt: head.Attempt, Spared: head.Spared, Orders: head.Orders, Seq: head.Seq}
	if head.Triggered() {
		c.Begun, c.Triggered = store.FromMillis(head.Token), head.WindowEnd
		o, told := head.Outcome()
		c.Failed = givenBack(head) && (!told || !spares(o))
		if head.WindowStart.Before(c.Begun) {
			c.Begun = head.WindowStart // After an override, tokens may be ahead of the time.
		}
	}
	return c
}
