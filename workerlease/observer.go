package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Observer gets every event of the workers of a client. Observe is called for one event of a
// worker at a time, in order. It must return quickly, and must not panic; a lease's context ends
// on time even if it is slow. With several workers it is called concurrently.
type Observer interface {
	Observe(e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// Observers passes each event on to all of them, in order. Those that are nil are left out.
func Observers(all ...Observer) Observer {
	var o observers
	for _, each := range all {
		if each != nil {
			o = append(o, each)
		}
	}
	return o
}

// observers passes events on to several.
type observers []Observer

func (o observers) Observe(e Event) {
	for _, each := range o {
		each.Observe(e)
	}
}

// Event is something that happened to a worker: a value of one of the types below. Later
// versions may add types.
type Event interface {
	// Of returns the worker that it happened to.
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
	// Started: a worker has begun. Self is that worker, for those who want to ask it for more than
	// events say, such as its Status at another time. It is the worker's first event.
	Started struct {
		Worker
		Self *WorkerLease
	}
	// Claimed: this worker, or another of its group (Joined), won a slot.
	Claimed struct {
		Worker
		Slot   slots.Slot
		Seq    int64
		Token  int64
		Joined bool
		// Early is how long before the boundary that became known.
		Early time.Duration
	}
	// Lost: another worker has the slot.
	Lost struct {
		Worker
		Slot   slots.Slot
		Holder store.Record
		// Inversion says that the holder's priority is lower than this worker's. This
		// worker's claim came more than a step late.
		Inversion bool
	}
	// Allocated: LeaseAllocated is being called.
	Allocated struct {
		Worker
		Lease Lease
		// Late is how long after the start of the slot that is, by the best guess of
		// store time.
		Late time.Duration
	}
	// TaskSucceeded: the task of Run returned nil after Took, or the code called
	// Lease.Succeeded; Took is zero then. At is the best guess of store time.
	TaskSucceeded struct {
		Worker
		Lease Lease
		Took  time.Duration
		At    time.Time
	}
	// Faltered: the code called Lease.Failed, or Lease.FailedWith: then with its error.
	Faltered struct {
		Worker
		Lease Lease
		Err   error
	}
	// TaskFailed: the task of Run returned an error. A panic is reported as Panic.
	TaskFailed struct {
		Worker
		Lease Lease
		Err   error
	}
	// SlotDone: the job of a slot is recorded as done.
	SlotDone struct {
		Worker
		Slot slots.Slot
		Seq  int64
	}
	// Exhausted: a slot has been tried Job.MaxAttempts times, and is not done. Nobody
	// tries it again.
	Exhausted struct {
		Worker
		Slot     slots.Slot
		Attempts int
	}
	// Postponed: a slot has been tried Attempts times, the last try has failed, and the next
	// one comes no sooner than After: see Job.MinRetry. Each worker that waits for that
	// reports it.
	Postponed struct {
		Worker
		Slot     slots.Slot
		Attempts int
		After    time.Time
	}
	// Rested: with Options.Continuous, the task has returned before its slot was over. The
	// lease goes on. If it does at Until, the start of the next slot, the task is called
	// again then.
	Rested struct {
		Worker
		Lease Lease
		Until time.Time
	}
	// HolderChanged: another worker holds the lease from Holder.From on, which may be in
	// the future; or there is a holder again; or the holder has released the lease as of
	// Holder.Until. It is reported when this worker reads it (see WorkerLease.Holder). It
	// is not reported for windows that are over by then, nor if the last holder goes on in
	// the next slot. InstanceID, Group, host and process identify a worker; two workers
	// of one process with one name count as one, except to themselves.
	HolderChanged struct {
		Worker
		Holder Holder
		// Released says that Holder has released the lease, as of Holder.Until, or that an
		// operator has overridden it.
		Released bool
	}
	// Extended: the lease goes on, up to Lease.Expiry.
	Extended struct {
		Worker
		Lease Lease
		Seq   int64
	}
	// Expired: the lease's context has ended, and LeaseExpired is being called.
	Expired struct {
		Worker
		Lease Lease
		Why   Reason
	}
	// Returned: all code under the lease has returned: the callbacks or the task, and what
	// RunIfHeld has called. It comes after Expired, and after what that code had to report.
	Returned struct {
		Worker
		Lease Lease
	}
	// Missed: all slots from Slot to Until have passed, this worker wanted them, and it
	// knows of no holder. Count is how many those are, up to 10,000.
	Missed struct {
		Worker
		Slot  slots.Slot
		Until time.Time
		Count int
		Why   Reason
	}
	// BecameIneligible: Options.Eligible found the worker unfit to lead, for the first time since it was
	// fit. Err says why. Slot is the one it contends for.
	BecameIneligible struct {
		Worker
		Slot slots.Slot
		Err  error
	}
	// BecameEligible: the worker is fit to lead again.
	BecameEligible struct {
		Worker
		Slot slots.Slot
	}
	// SteppedBack: the code has failed in so many slots in a row, of which Slot is the newest: it
	// panicked, the task returned an error, or it made no progress. In the slots before Until the
	// worker comes at the end of the turn of the lowest priority, so that others go first.
	SteppedBack struct {
		Worker
		Slot     slots.Slot
		Failures int
		Until    time.Time
	}
	// Ranked: by Options.Policy or priority.Spread the worker claims by Priority from now on, for the reason
	// Why, and before others of that priority if First is set.
	Ranked struct {
		Worker
		Priority int
		First    bool
		Why      string
	}
	// RosterFailed: the roster can't be read or written (see ClientOptions.Roster). No lease depends on it.
	// It is reported once, by one of the client's workers, and the store is asked again.
	RosterFailed struct {
		Worker
		Err error
	}
	// Released: what was left of a lease is free for others, as of At.
	Released struct {
		Worker
		Slot slots.Slot
		Seq  int64
		At   time.Time
	}
	// Overrun: the window has ended, and the user's code has not returned.
	Overrun struct {
		Worker
		Slot slots.Slot
	}
	// Panic: a callback or task panicked. Err names it, and has the value and the stack.
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
	// Conflict: an append found its key taken. Another worker was faster, or a driver
	// retried: the record at the key decides.
	Conflict struct {
		Worker
		Seq int64
	}
	// Unknown: the reply to an append leaves open whether the record was stored. If the
	// store throttled it, Throttled is reported instead.
	Unknown struct {
		Worker
		Seq int64
		Err error
	}
	// Throttled: the store asks for a pause before the next try.
	Throttled struct {
		Worker
		Operation  string
		RetryAfter time.Duration
		Err        error
	}
	// Operated: a ledger operation (append, tail, get, now, trim, …) has come back after Took, with
	// its error or nil. What that means comes as another event, such as StoreFailed, Unknown or
	// Conflict.
	Operated struct {
		Worker
		Operation string
		Took      time.Duration
		Err       error
	}
	// StoreFailed: a ledger operation failed, and had no effect.
	StoreFailed struct {
		Worker
		Operation string
		Err       error
	}
	// ClockSample: the store answered with its time.
	ClockSample struct {
		Worker
		Server      string
		RoundTrip   time.Duration
		StoreTime   time.Time
		Uncertainty time.Duration
		// Note is what the store adds, such as which servers' clocks can't be asked (see
		// store.Noter); empty if there is nothing to say.
		Note string
	}
	// ClockJump: the store's time contradicts earlier samples, or further samples have
	// decided between them.
	ClockJump struct {
		Worker
		Server      string
		Verdict     ClockVerdict
		StoreTime   time.Time
		Uncertainty time.Duration
	}
	// TooUncertain: slots, or the parts that FailoverWithin makes of them, are too short
	// for an uncertainty of store time of ±Uncertainty, so slots are lost in part or
	// whole. It is reported once; Callbacks.Error gets Err.
	TooUncertain struct {
		Worker
		Uncertainty time.Duration
		Err         error
	}
	// Lapsed: a lease that could have been extended has ended because the store took no
	// appends for about Outage, as while its servers elect a primary. Err names the value of the
	// option that would have held it. It is reported once, when the store answers again;
	// Callbacks.Error gets Err.
	Lapsed struct {
		Worker
		Outage time.Duration
		Err    error
	}
	// StoreWarning: the store describes a shortcoming in one line, such as a clock that seems
	// wrong (see store.Warner). Each is reported once, whatever its figures are later, and ten
	// at most; Callbacks.Error gets it, too.
	StoreWarning struct {
		Worker
		Text string
	}
	// WatchFailed: the store gives no hints here, or none for now (see store.Watcher), so standbys look
	// at the ledger only when it is time. It is reported once, by one of the client's workers
	// with FailoverWithin, and the store is asked again, unless Err matches errors.ErrUnsupported.
	WatchFailed struct {
		Worker
		Err error
	}
	// Charged: the store billed an operation, in its own unit (request units for Cosmos
	// DB), whatever the outcome. Status has the sums.
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
	// below it is free, the ledger goes on below it, and no slot is lost until it has come
	// there. Otherwise slots are lost until the poison is superseded: 5 min and a
	// slot or, if that is longer, its longest window, up to 24 h, after some worker has seen it
	// (this worker, if it is only too far ahead of store time, or the first record). If no record below it
	// can be obeyed, and record 1 has been trimmed, no worker supersedes it: see Override.
	Poison struct {
		Worker
		Seq int64
		Err error
	}
	// Blocked: the newest record of the ledger can be obeyed, and leaves nothing to claim up
	// to Until, more than a day after the slot: its window lasts that long or, if Done is set,
	// it says that all slots up to then are done. It is reported once. An operator can end it:
	// see Override.
	Blocked struct {
		Worker
		Seq   int64
		Until time.Time
		Done  bool
	}
	// PoisonReset: poison was superseded.
	PoisonReset struct {
		Worker
		Seq    int64
		Reason string
	}
	// Vanished: a grant to this worker is no longer in the ledger. The read was stale, or
	// the store took back what it had confirmed; then another worker may have been granted
	// the same window. Check the store's write and read concern, and whether a backup was
	// restored. Or an operator has overridden the grant: Err says who. A worker notices when
	// it reads the ledger in the next slot, unless more than 16 records have come after its
	// own.
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
