package event

import (
	"log/slog"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// What happens to a worker and its leases.
type (
	// Started: a worker has begun. Self is that worker, a *workerlease.WorkerLease, for an observer that wants its Status
	// at another time. It is the worker's first event.
	Started struct {
		Worker
		Self any
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
	// Lost: another worker has the slot, or has done its job.
	Lost struct {
		Worker
		Slot   slots.Slot
		Holder store.Record
		// Inversion says that the holder's priority is lower than this worker's. This
		// worker's claim came more than a quarter of a step late.
		Inversion bool
		// Done says that the job of the slot is done.
		Done bool
	}
	// Allocated: LeaseAllocated is being called.
	Allocated struct {
		Worker
		Lease Lease
		// Late is how long after the start of the slot that is, by the best guess of
		// store time.
		Late time.Duration
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
	// Expired: the lease's context has ended, and LeaseExpired is being called. Early says that its window has ended before its slot,
	// or in a run that goes on into later slots: it could not be extended in time.
	Expired struct {
		Worker
		Lease Lease
		Why   Reason
		Early bool
	}
	// Returned: all code under the lease has returned: the callbacks or the task, and what
	// RunIfHeld has called. It comes after Expired, and after what that code had to report.
	Returned struct {
		Worker
		Lease Lease
	}
	// Missed: all slots from Slot to Until have passed, this worker wanted them, and it
	// knows of no holder. Count is how many those are, up to 10,000. Slots of a job are told
	// once by each worker that was there or comes later, and those that may be run late
	// (see Job.CatchUp) once they aren't, unless something keeps the worker from claiming.
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
	// SteppedBack: the worker has failed in so many slots in a row, of which Slot is the newest: its code
	// panicked, the task returned an error, or it made no progress; or the worker was found unfit when it had the slot. In the slots before Until the
	// worker comes at the end of the turn of the lowest priority, and others go first.
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
	// Stuck: the worker did nothing for Took, because In had not returned: the Observer, the Logger or Callbacks.Error.
	// It is reported when that has returned. Or In is Options.Policy, and has not returned for Took: Priority counts.
	Stuck struct {
		Worker
		In   string
		Took time.Duration
	}
	// StopFailed: the context of StartLeasing or StartTask ended, and the worker could not
	// stop in order within 10 s. Err is the error of StopLeasing.
	StopFailed struct {
		Worker
		Err error
	}
)

// How they are logged.

func (Started) line() line {
	return line{slog.LevelDebug, "worker started", nil}
}

func (e Claimed) line() line {
	return line{slog.LevelDebug, "slot claimed", attrs{
		{"slot", e.Slot},
		{"seq", e.Seq},
		{"token", e.Token},
		{"joined", e.Joined},
		{"early", e.Early},
	}}
}

func (e Lost) line() line {
	return line{slog.LevelDebug, "slot lost", attrs{
		{"slot", e.Slot},
		{"holder", e.Holder.InstanceID},
		{"holderPriority", e.Holder.Priority},
		{"inversion", e.Inversion},
		{"done", e.Done},
	}}
}

func (e Allocated) line() line {
	return line{slog.LevelInfo, "lease allocated", attrs{
		{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"late", e.Late},
	}}
}

func (e Rested) line() line {
	return line{slog.LevelInfo, "task rests", attrs{
		{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"until", store.Format(e.Until)},
	}}
}

func (e HolderChanged) line() line {
	return line{slog.LevelDebug, "holder changed", attrs{
		{"holder", e.Holder.InstanceID},
		{"token", e.Holder.Token},
		{"from", store.Format(e.Holder.From)},
		{"until", store.Format(e.Holder.Until)},
		{"released", e.Released},
	}}
}

func (e Extended) line() line {
	return line{slog.LevelDebug, "lease extended", attrs{
		{"slot", e.Lease.Slot},
		{"token", e.Lease.Token},
		{"seq", e.Seq},
		{"expiry", store.Format(e.Lease.Expiry)},
	}}
}

func (e Expired) line() line {
	level := slog.LevelInfo
	if e.Early {
		level = slog.LevelWarn
	}
	return line{level, "lease expired", attrs{
		{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"why", string(e.Why)},
	}}
}

func (e Returned) line() line {
	return line{slog.LevelDebug, "code returned", attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}}}
}

func (e Missed) line() line {
	return line{slog.LevelWarn, "slot missed", attrs{
		{"slot", e.Slot}, {"until", store.Format(e.Until)}, {"count", e.Count}, {"why", string(e.Why)},
	}}
}

func (e BecameIneligible) line() line {
	return line{slog.LevelWarn, "not eligible", attrs{{"slot", e.Slot}, {"error", e.Err}}}
}

func (e BecameEligible) line() line {
	return line{slog.LevelInfo, "eligible again", attrs{{"slot", e.Slot}}}
}

func (e SteppedBack) line() line {
	return line{slog.LevelWarn, "stepped back", attrs{{"slot", e.Slot}, {"failures", e.Failures}, {"until", e.Until}}}
}

func (e Ranked) line() line {
	return line{slog.LevelDebug, "ranked", attrs{{"priority", e.Priority}, {"first", e.First}, {"why", e.Why}}}
}

func (e Released) line() line {
	return line{slog.LevelInfo, "lease released", attrs{
		{"slot", e.Slot}, {"seq", e.Seq}, {"at", store.Format(e.At)},
	}}
}

func (e Overrun) line() line {
	return line{slog.LevelWarn, "callback overruns its lease", attrs{{"slot", e.Slot}}}
}

func (e Panic) line() line {
	return line{slog.LevelError, "callback panicked", attrs{{"slot", e.Slot}, {"error", e.Err}}}
}

func (e Stuck) line() line {
	return line{slog.LevelError, "worker was stuck", attrs{{"in", e.In}, {"took", e.Took}}}
}

func (e StopFailed) line() line {
	return line{slog.LevelWarn, "stopping failed", attrs{{"error", e.Err}}}
}
