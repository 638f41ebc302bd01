package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Observer is told of everything that happens to workers. Observe is called on
// the worker's goroutine, in order. It must return quickly (a lease's context
// ends on time all the same) and must not panic. An observer of a client with
// several workers must be safe for concurrent use.
type Observer interface {
	Observe(e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// observers tells several.
type observers []Observer

func (o observers) Observe(e Event) {
	for _, each := range o {
		each.Observe(e)
	}
}

// Event is something that happened, as a value: one of the types below.
type Event interface {
	// Of is the worker that it happened to.
	Of() Worker
}

// Worker names a worker in events.
type Worker struct {
	WorkerType string
	InstanceID string
}

// Of returns the worker itself.
func (w Worker) Of() Worker { return w }

// The events. All times are store time.
type (
	// Claimed: the worker, or another of its group (Joined), won a slot.
	Claimed struct {
		Worker
		Slot   slots.Slot
		Seq    int64
		Token  int64
		Joined bool
		// Early is how long before the boundary it was known.
		Early time.Duration
	}
	// Lost: another worker has the slot.
	Lost struct {
		Worker
		Slot   slots.Slot
		Holder store.Record
		// Inversion says that the holder's priority is lower than this worker's,
		// which was alive: its claim came later than one step.
		Inversion bool
	}
	// Allocated: LeaseAllocated is being called.
	Allocated struct {
		Worker
		Lease Lease
		// Late is how long after the start of the slot, by the best guess.
		Late time.Duration
	}
	// TaskFailed: the task of Run returned an error. One that panicked is told as Panic.
	TaskFailed struct {
		Worker
		Lease Lease
		Err   error
	}
	// SlotDone: the work of a slot is done, once and for all.
	SlotDone struct {
		Worker
		Slot slots.Slot
		Seq  int64
	}
	// Exhausted: nobody tries a slot again that is not done.
	Exhausted struct {
		Worker
		Slot     slots.Slot
		Attempts int
	}
	// HolderChanged: somebody else holds the lease from Holder.From on, which may be
	// ahead, or somebody at all after a time without a holder, or the holder has released
	// it at Holder.Until. It is told when this worker sees it (see WorkerLease.Holder), and
	// not of windows that are over by then, nor when who had the slot before goes on in the
	// next. Workers are told apart by InstanceID, Group, host and process; two of one name
	// in one process only by themselves.
	HolderChanged struct {
		Worker
		Holder Holder
		// Released says that Holder has given the lease back, as of Holder.Until.
		Released bool
	}
	// Extended: the lease goes on, up to Lease.Expiry.
	Extended struct {
		Worker
		Lease Lease
		Seq   int64
	}
	// Expired: the context was cancelled and LeaseExpired is being called.
	Expired struct {
		Worker
		Lease Lease
		Why   Reason
	}
	// Missed: slots passed that this worker wanted, and it doesn't know of a
	// holder: all from Slot to Until.
	Missed struct {
		Worker
		Slot  slots.Slot
		Until time.Time
		Why   Reason
	}
	// Released: what was left of a lease is free for others.
	Released struct {
		Worker
		Slot slots.Slot
		Seq  int64
		At   time.Time
	}
	// Overrun: the window ended and the user's code has not returned.
	Overrun struct {
		Worker
		Slot slots.Slot
	}
	// Panic: a callback panicked. Err says which, and has the value and the stack.
	Panic struct {
		Worker
		Slot slots.Slot
		Err  error
	}
	// StopFailed: the context of StartLeasing or StartTask ended, and the worker could not
	// stop in order within 10 s. Err is the error of StopLeasing.
	StopFailed struct {
		Worker
		Err error
	}
	// Conflict: an append found its key taken. Another was faster, or a driver
	// retried: what stands at the key decides.
	Conflict struct {
		Worker
		Seq int64
	}
	// Unknown: an append failed in a way that leaves open whether it was applied.
	// A throttled one is told as Throttled.
	Unknown struct {
		Worker
		Seq int64
		Err error
	}
	// Throttled: the store asks to come again later.
	Throttled struct {
		Worker
		Operation  string
		RetryAfter time.Duration
		Err        error
	}
	// StoreFailed: a ledger operation failed and had no effect.
	StoreFailed struct {
		Worker
		Operation string
		Err       error
	}
	// ClockSample: the store told its time.
	ClockSample struct {
		Worker
		Server      string
		RoundTrip   time.Duration
		StoreTime   time.Time
		Uncertainty time.Duration
	}
	// ClockJump: the store's time contradicts what was known (Contradiction), so
	// that a held lease ends at once, or another server told it.
	ClockJump struct {
		Worker
		Server        string
		Contradiction bool
		StoreTime     time.Time
		Uncertainty   time.Duration
	}
	// TooUncertain: slots, or the parts that FailoverWithin makes of them, are too short
	// for what is uncertain of store time (by Uncertainty either way), so that they are
	// lost in part or all. It is told once, and as Err to Callbacks.Error.
	TooUncertain struct {
		Worker
		Uncertainty time.Duration
		Err         error
	}
	// Charged: an operation was billed by the store, in its own unit (request units
	// of Cosmos DB), whatever its outcome. The sums are in Status.
	Charged struct {
		Worker
		Operation string
		Units     float64
	}
	// Trimmed: old records were deleted.
	Trimmed struct {
		Worker
		Count int
	}
	// Poison: the newest record can't be obeyed, or (Seq 0) a key can't be read. If a key
	// below it is free, no worker has written it: the ledger goes on below it, and slots
	// are lost only when it has come there. Else slots are, until poison is superseded:
	// it is watched for 5 min on top of a slot or, if that is longer, of the longest window
	// that it and the poison below it tell of, up to 24 h. If no record that can be obeyed
	// is found below it, it never is: remove it by hand.
	Poison struct {
		Worker
		Seq int64
		Err error
	}
	// PoisonReset: poison was superseded.
	PoisonReset struct {
		Worker
		Seq    int64
		Reason string
	}
	// Vanished: a grant to this worker is not in the ledger any more. The read was
	// stale, or the store took back what it had confirmed; another worker may then
	// have been granted the same window. Check what the store promises: write and
	// read concern, a restored backup. It is seen when the worker reads the ledger again,
	// which it does in each slot; who was cut off for so long that more than 16 records
	// came behind its own doesn't look for it any more.
	Vanished struct {
		Worker
		Seq int64
		Err error
	}
	// ScheduleMismatch: another worker of the type has another schedule.
	ScheduleMismatch struct {
		Worker
		Ours, Theirs string
		Holder       string
	}
)
