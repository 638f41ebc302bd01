package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Moment is when something happened, and a draw of randomness for it.
type Moment struct {
	// Now contains store time, for a reader settled up to Clock.Settled.
	Now timeline.Interval
	// Local is the local reading, for waits that must not depend on the store.
	Local time.Duration
	// Newest contains store time for a reader that has settled all epochs. Records are
	// judged by it: one from a time that was never in force must not pass for good until
	// that has come by all clocks.
	Newest timeline.Interval
	// Age of the newest sample of store time.
	Age time.Duration
	// Epoch and Jumps count what happened to the time line, and Began is the local reading
	// at which the epoch began.
	Epoch, Jumps int
	Began        time.Duration
	// History is the newest name of the store's history; empty if there is none.
	History string
	// Single reports that Now comes from a single sample.
	Single bool
	// InQuestion reports that samples contradict one another, which further ones decide.
	InQuestion bool
	// Beside reports that the user's code still runs for a trigger whose lease has ended.
	Beside bool
	// Lapsed is the reason why the context of the lease that is held has already ended,
	// if it has.
	Lapsed Reason
	// Progressed is the local reading at which the user's code last reported progress.
	Progressed time.Duration
	// Draw is random.
	Draw [16]byte
}

// Event is something that happened.
type Event interface{ event() }

// The events. Those with Err report a ledger operation that was asked for, and how long it
// took by the local clock.
type (
	// Wake: a timer fired, or nothing special happened.
	Wake struct{}
	// Sampled: the store was asked for its time.
	Sampled struct {
		Took time.Duration
		Err  error
	}
	// HeadRead: the tail of the ledger was read, newest first.
	HeadRead struct {
		Records []store.Record
		Took    time.Duration
		Err     error
	}
	// RecordRead: one key was read.
	RecordRead struct {
		Seq    int64
		Record store.Record
		Took   time.Duration
		Err    error
	}
	// Appended: an append came back.
	Appended struct {
		Seq  int64
		Took time.Duration
		Err  error
	}
	// Trimmed: a trim came back.
	Trimmed struct {
		Count int
		Err   error
	}
	// Sighted: since when some worker has seen poison, by the store's time, is recorded.
	Sighted struct {
		Since time.Time
		Err   error
	}
	// Began: LeaseAllocated is about to run, and store time is inside the window.
	Began struct{}
	// Skipped: the user's code was not started, because right before it store
	// time was no longer surely inside the window.
	Skipped struct {
		Unwanted bool // or because nobody waits for it any more: the worker stops
	}
	// Panicked: LeaseAllocated panicked.
	Panicked struct{ Work Work }
	// Finished: the user's code has ended by itself, because its work for the slot is
	// done or because of an error.
	Finished struct {
		Done      bool
		GivesBack bool // it is neither done nor has it failed
		Work      Work
	}
	// Rested: the user's code has nothing more to do in this slot. It is to be called
	// again in the next one, if the lease goes on into it.
	Rested struct{}
	// Faltered: the work of the lease of a claim has failed, and the user's code keeps the lease nevertheless.
	Faltered struct {
		Claim string
		Work  Work
	}
	// Worked: the user's code has ended under the lease of a claim, and that closes no slot: it has
	// failed after its lease.
	Worked struct {
		Claim  string
		Failed bool
		Work   Work
	}
	// Returned: the user's code, both callbacks, has returned.
	Returned struct{}
	// Hinted: the store says that something may have been appended. It may be wrong.
	Hinted struct{}
	// Judged: the user's check has answered; an error says why the worker is not fit to lead.
	Judged struct{ Err error }
	// Ranked: the client has found another place among others for the worker.
	Ranked struct{ Rank Rank }
	// Remembered: a process whose place the worker takes has said of itself that it had Trouble, that it
	// Held a lease, that it began at Since, and that it was there at Seen. Died: it did not say that it ends.
	Remembered struct {
		Trouble     Trouble
		Died, Held  bool
		Since, Seen time.Time
	}
	// Drain: leasing is to end as soon as no user code runs, and nothing more is to begin.
	Drain struct{}
	// Stop: leasing is to end.
	Stop struct{}
	// GiveUp: the time for stopping is over; start no more operations.
	GiveUp struct{}
)

func (Wake) event()       {}
func (Sampled) event()    {}
func (HeadRead) event()   {}
func (RecordRead) event() {}
func (Appended) event()   {}
func (Trimmed) event()    {}
func (Sighted) event()    {}
func (Began) event()      {}
func (Skipped) event()    {}
func (Panicked) event()   {}
func (Finished) event()   {}
func (Rested) event()     {}
func (Faltered) event()   {}
func (Worked) event()     {}
func (Returned) event()   {}
func (Hinted) event()     {}
func (Judged) event()     {}
func (Ranked) event()     {}
func (Remembered) event() {}
func (Drain) event()      {}
func (Stop) event()       {}
func (GiveUp) event()     {}

// Action is something to do. At most one ledger operation (Sample, ReadHead,
// ReadRecord, Append, Trim, Sight) is asked for at a time.
type Action interface{ action() }

// The actions.
type (
	// Sample: ask the store for its time.
	Sample struct{}
	// ReadHead: read the tail.
	ReadHead struct{ Limit int }
	// ReadRecord: read one key.
	ReadRecord struct{ Seq int64 }
	// Append: append a record, if Prev is still the one below it, unless Prev is the zero Record.
	Append struct{ Record, Prev store.Record }
	// Trim: delete records below a Seq.
	Trim struct{ Before int64 }
	// Sight: record that poison was seen since a time, unless a sighting of it is recorded.
	Sight struct {
		Poison store.Record
		Since  time.Time
		Why    string
	}
	// Allocate: call LeaseAllocated, unless it is too late right before.
	Allocate struct{ Term Term }
	// Extend: the term that is held ends later.
	Extend struct{ Term Term }
	// CallAgain: call the user's code, which rests, again.
	CallAgain struct{}
	// Expire: end the context and call LeaseExpired.
	Expire struct{ Why Reason }
	// Observe: a record that can be obeyed was read or appended; Own reports that its claim is
	// the worker's. It is for information: nothing follows from it here.
	Observe struct {
		Record store.Record
		Own    bool
	}
	// Check: ask the user's check whether the worker is fit to lead.
	Check struct{}
	// Tell: report a note to observers.
	Tell struct{ Note Note }
	// Halt: the worker is done.
	Halt struct{}
)

func (Sample) action()     {}
func (ReadHead) action()   {}
func (ReadRecord) action() {}
func (Append) action()     {}
func (Trim) action()       {}
func (Sight) action()      {}
func (Allocate) action()   {}
func (Extend) action()     {}
func (CallAgain) action()  {}
func (Expire) action()     {}
func (Observe) action()    {}
func (Check) action()      {}
func (Tell) action()       {}
func (Halt) action()       {}

// Reason says why a lease ended or a slot was missed.
type Reason int

// The reasons for the end of a lease, then those for a missed slot.
const (
	// WindowEnded: the last safe moment of the window came.
	WindowEnded Reason = iota + 1
	// Stopping: leasing was stopped.
	Stopping
	// ClockJumped: store time can't be trusted any more.
	ClockJumped
	// CodePanicked: LeaseAllocated panicked.
	CodePanicked
	// RecordVanished: another's record stands where the lease's stood.
	RecordVanished
	// CodeDone: the user's code has done its work for the slot.
	CodeDone
	// CodeFailed: the user's code returned an error.
	CodeFailed
	// Ineligible: the user's check says that the worker is not fit to lead. A slot may be missed by it, too.
	Ineligible
	// Stalled: the user's code showed no progress.
	Stalled
	// Unreachable: the store didn't answer in time.
	Unreachable
	// TooLate: the slot was won, but too little was left of it.
	TooLate
	// Overrunning: the user's code of an earlier slot had not returned.
	Overrunning
	// Poisoned: the head of the ledger can't be obeyed.
	Poisoned
	// Denied: rights are missing.
	Denied
	// Barred: the store refuses, as for what a collection is.
	Barred
	// Paused: an operator has paused the worker type. It may end a lease, too, as the next ones do.
	Paused
	// Drained: an operator has drained the host.
	Drained
	// Ordered: an operator has asked for the release, or prefers another worker.
	Ordered
	// WentBack: the store has lost records, and others may work under them.
	WentBack
	// TimedOut: the user's code ran for longer than it may.
	TimedOut
	// Unattended: no worker was there when the slot's work could begin.
	Unattended
)

// String names the reason.
func (r Reason) String() string {
	if r < WindowEnded || r > Unattended {
		return "unknown"
	}
	return [...]string{
		"window ended", "stopped", "clock jumped", "panicked", "record vanished", "done", "failed", "ineligible", "no progress",
		"store unreachable", "too late", "overrun", "poison", "access denied", "refused by the store", "paused", "drained", "asked to release", "store went back",
		"timed out", "no worker in time",
	}[r-1]
}

// What is the kind of a Note.
type What int

// The kinds of notes.
const (
	Claimed What = iota + 1
	Joined
	Lost
	Allocated
	Expired
	Missed
	Released
	Overrun
	Conflict
	Unknown
	Failed
	Cleared
	Poison
	Reset
	Mismatch
	OtherWork
	Vanished
	Extended
	SlotDone
	Exhausted
	Postponed
	Resting
	Blocked
	BecameUnfit
	BecameFit
	SteppedBack
	Forgot
	Outlasted  // a slot that can't begin, because the work of an earlier one, Of, goes on since Until; Count in a row
	WorkerDied // another worker, that of Record, has gone without a word: amid the attempt Count at a slot, or without a job
)

// String names the kind.
func (w What) String() string {
	if w < Claimed || w > WorkerDied {
		return "unknown"
	}
	return [...]string{
		"claimed", "joined", "lost", "allocated", "expired", "missed", "released", "overrun",
		"conflict", "unknown", "failed", "trimmed", "poison", "reset", "mismatch", "other work", "vanished", "extended",
		"done", "exhausted", "postponed", "resting", "blocked", "ineligible", "eligible", "stepped back", "forgot", "skipped", "worker died",
	}[w-1]
}

// Note is a report to observers. Which fields are set depends on What.
type Note struct {
	What   What
	Slot   slots.Slot
	Of     slots.Slot // Outlasted: the one whose work goes on
	Until  time.Time  // Missed: the end of the last slot that was missed; Postponed, Resting, Blocked, Forgot: when it goes on
	Record store.Record
	Why    Reason
	Err    error
	Op     Op
	Count  int
}
