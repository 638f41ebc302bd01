package history

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// State is what became of a slot, as of the time that was passed to [Read]. The entry of
// a record of a kind that this version doesn't know has that kind as its State.
type State string

// The states of an entry.
const (
	// Upcoming: the slot is claimed, and the lease has not begun.
	Upcoming State = "upcoming"
	// Held: the lease is in force.
	Held State = "held"
	// Expired: the lease ran to the end of its window. The holder finished without
	// releasing it, or died: see [Entry.Silent].
	Expired State = "expired"
	// Released: the holder gave back the rest of the lease.
	Released State = "released"
	// Overridden: an operator ended the lease by an override. Its holder may have worked on.
	Overridden State = "overridden"
	// Missed: the slot has passed, and nobody claimed it, or the worker died in it that ran an earlier one.
	Missed State = "missed"
	// Skipped: nobody began the work of the slot, because it still ran for an earlier one when the slot
	// began: see Entry.RunsFor. If that slot is the present one, it may yet be begun: see Entry.MayBegin.
	Skipped State = "skipped"
	// Free: the slot has begun, and nobody has claimed it.
	Free State = "free"
	// Done: the work of the slot is recorded as done, by the holder or by a worker that
	// made up for a missed slot. No worker runs it again.
	Done State = "done"
	// Failed: the work of the slot has failed, as far as its newest outcome says, or because its worker died, and
	// is not done. The lease may be in force yet: see [Entry.InForce].
	Failed State = "failed"
	// Poison: workers can't obey the record, or don't follow it, because a key below it is
	// free. Defect says why.
	Poison State = "poison"
)

// Entry is what the records of one term say of a slot, or a slot without records, or a
// record that grants nothing. All times are store time.
type Entry struct {
	// Slot is the slot of the schedule. It is the window of the first record if that
	// doesn't name its slot, and can be zero for Poison. Its Start is zero for the slot
	// of a done record whose schedule can't be read.
	Slot  slots.Slot
	State State
	// Count is the number of slots that the entry stands for: 1, except for several
	// missed or skipped slots in a row, from Slot.Start to Slot.End. More says that counting stopped
	// at [MaxMissed].
	Count int
	More  bool

	// Record is the first record of the term in this slot that was read. It names the
	// holder (InstanceID, Group), the Priority, the Token and the Seq. It is the zero
	// Record for Missed and Free; for a missed slot that was made up for it is the done
	// record, and for Skipped the grant of the run that went on.
	Record store.Record
	// Window is what Record and its extensions within the slot grant.
	Window slots.Slot
	// Extensions is how often the lease was extended within the slot, and NewestSeq the
	// Seq of the newest extension; 0 if it never was.
	Extensions int
	NewestSeq  int64
	// Written is when its worker, or the one that claimed for its group, is known to have written of it last: that it has the lease,
	// gives back the rest, or what came of the work. It is zero if its records don't say.
	Written time.Time
	// Attempt is how many times the slot had been begun by then, this term included; 0
	// if the worker doesn't count attempts.
	Attempt int
	// Takeover says that another term had a part of this slot before.
	Takeover bool
	// Partial says that the term began in this slot before Record, which is the oldest
	// record that was read.
	Partial bool

	// Claimed is when the claim was fixed, relative to Slot.Start: negative before the
	// boundary. It means nothing unless ClaimKnown is set.
	Claimed    time.Duration
	ClaimKnown bool
	// ReleasedAt is when the rest of the lease was given back; zero if it wasn't.
	ReleasedAt time.Time
	// Unbegun says that the lease was given back, and nothing was begun under it: it isn't counted as an attempt. Its worker may
	// have learned of it when it was over, since the store answered late; then that is when it was given back.
	Unbegun bool
	// OverriddenAt is when an operator ended the lease; zero if none did.
	OverriddenAt time.Time
	// DoneAt is when the work was recorded as done. It is zero if it wasn't, and if the
	// record that said so was not read.
	DoneAt time.Time
	// Outcome is what came of the work under this term, as its worker recorded it last. It means
	// nothing unless OutcomeKnown is set. A worker that dies records nothing; nor does one whose task
	// succeeds, unless that runs once per slot (Options.Job).
	Outcome      store.Outcome
	OutcomeKnown bool
	// Cause is why the attempt under this term failed, if it did not end by itself: as its outcome says, or WorkerDied
	// if the lease of a job has ended without a word.
	Cause store.Cause
	// RunsFor is, of a skipped slot, the slot for which the work still ran when it began, and RunsSince since when. One that was
	// missed, or is free, has them if the worker of that run died in it.
	RunsFor   slots.Slot
	RunsSince time.Time
	// Order is, of a missed slot, that of an operator in force in it: a pause, or the drain of a host. Of a run that an operator has
	// asked for beside the slots it is the trigger, and Slot is the time in which the run could begin. Nil if there was none.
	Order *store.Order
	// BlocksUntil is set for the newest entry if a record leaves nothing to claim for more
	// than a slot and a day: its window lasts until then, or it says that the jobs of all
	// slots up to then are done. BlockedBy is the Seq of that record. (To override it an
	// operator names the record that [FindHead] returns.)
	BlocksUntil time.Time
	BlockedBy   int64
	// Defect is why workers can't obey Record, in one line; empty unless State is Poison.
	Defect string
}

// Late is how long after the start of the slot the window begins. It is zero for a lease
// of the whole slot, and for an entry without a grant.
func (e Entry) Late() time.Duration {
	if e.Record.Kind != store.KindGrant {
		return 0
	}
	return max(0, e.Window.Start.Sub(e.Slot.Start))
}

// Silent reports that the lease ended before its slot, or before its job, without a word of its worker: that died, stood
// still, or couldn't reach the store. Of a lease that lasted to the end of its slot, and no longer, nobody knows yet, or ever
// without a job.
func (e Entry) Silent() bool {
	cut := e.Window.End.Before(e.Slot.End) || e.Attempt > 0 && e.Window.End.After(e.Slot.End) // Only a job that goes on has more than its slot.
	return e.Cause == store.WorkerDied || e.State == Expired && !e.OutcomeKnown && cut
}

// judge sets the state of a term at a time.
func (e *Entry) judge(now time.Time) {
	switch {
	case now.Before(e.Window.Start):
		e.State = Upcoming
	case now.Before(e.Window.End):
		e.State = Held
	default:
		e.State = Expired
	}
}

// granted reports that the entry is a term's.
func (e *Entry) granted() bool {
	return e.Record.Kind == store.KindGrant && e.State != Poison && e.State != Skipped
}

// CaughtUp reports that the term began when its slot was over: its work was done late.
func (e Entry) CaughtUp() bool {
	return e.granted() && e.Attempt > 0 && e.Slot.Start.Before(e.Slot.End) && !store.FromMillis(e.Record.Token).Before(e.Slot.End) && !e.Window.Start.Before(e.Slot.End)
}

// Overran is how long the run of a job went on after the end of its slot, as of a time; 0 if it didn't, or was late.
func (e Entry) Overran(at time.Time) time.Duration {
	if !e.granted() || e.Attempt == 0 || e.CaughtUp() {
		return 0
	}
	until := e.Window.End
	for _, end := range []time.Time{at, e.ReleasedAt, e.OverriddenAt, e.DoneAt, e.Outcome.Ended} {
		if !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	return max(0, until.Sub(e.Slot.End))
}

// write takes in a record of its term, which another of its group may have written.
func (e *Entry) write(r store.Record) {
	if r.InstanceID == e.Record.InstanceID && r.Worker == e.Record.Worker && r.ReadAt.After(e.Written) {
		e.Written = r.ReadAt
	}
}

// ofRecord is the entry of a record.
func ofRecord(r store.Record, s State) Entry {
	return Entry{
		Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, State: s, Count: 1,
		Record: r, Window: slots.Slot{Start: r.WindowStart, End: r.WindowEnd},
	}
}
