package event

import (
	"log/slog"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// What comes of the work of a slot.
type (
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
	// TaskFailed: an attempt has failed: the task of Run returned an error, or was cut by the end of its lease or
	// by Job.Timeout, as Cause says then. One whose Cause is Spared, as of a deployment, counts as no attempt. GivenUp
	// says that it was the last of Job.MaxAttempts. A panic is reported as Panic.
	TaskFailed struct {
		Worker
		Lease   Lease
		Err     error
		Cause   store.Cause
		GivenUp bool
	}
	// WorkerDied: another worker, Holder, has gone without a word, as by a kill, or because it doesn't reach the store
	// any more: amid an Attempt at the job of the slot, or while it held a lease that it would have extended, with
	// Attempt 0. This worker has read that in the ledger. GivenUp says that it was the last of Job.MaxAttempts.
	// Nobody is told dead who held the rest of a slot, and would have handed it over then. One whose code doesn't return before its
	// window ends, when it is told to, may be: it says nothing until then, and its own log has an Overrun. While the store is slow, more
	// than one worker may say so.
	WorkerDied struct {
		Worker
		Slot    slots.Slot
		Attempt int
		Holder  string
		GivenUp bool
	}
	// Skipped: the job of a slot is not begun, because this worker's task still runs for an earlier one, Running, since
	// Since. Row is how many slots in a row were skipped for it so far.
	Skipped struct {
		Worker
		Slot    slots.Slot
		Running slots.Slot
		Since   time.Time
		Row     int
	}
	// SlotDone: the job of a slot is recorded as done.
	SlotDone struct {
		Worker
		Slot slots.Slot
		Seq  int64
	}
	// Exhausted: Attempts at a slot that count have failed, Job.MaxAttempts of them, and it is not done. It
	// is not tried again. Each worker that was there by then reports it once.
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
)

// How they are logged.

func (e TaskSucceeded) line() line {
	return line{slog.LevelDebug, "task succeeded", attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"took", e.Took}}}
}

func (e Faltered) line() line {
	level, details := slog.LevelDebug, attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}}
	if e.Err != nil {
		level, details = slog.LevelWarn, append(details, attr{"error", e.Err})
	}
	return line{level, "work failed", details}
}

func (e TaskFailed) line() line {
	details := attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"error", e.Err}}
	if e.Cause != "" {
		details = append(details, attr{"cause", string(e.Cause)})
	}
	if e.GivenUp {
		details = append(details, attr{"givenUp", true})
	}
	level := slog.LevelWarn
	if e.Cause.Spared() {
		level = slog.LevelInfo
	}
	return line{level, "task failed", details}
}

func (e WorkerDied) line() line {
	details := attrs{{"slot", e.Slot}, {"holder", e.Holder}}
	if e.Attempt > 0 {
		details = append(details, attr{"attempt", e.Attempt}, attr{"givenUp", e.GivenUp})
	}
	return line{slog.LevelWarn, "worker died", details}
}

func (e Skipped) line() line {
	level := slog.LevelInfo
	if e.Row > 1 {
		level = slog.LevelWarn
	}
	return line{level, "slot skipped", attrs{{"slot", e.Slot}, {"running", e.Running}, {"since", store.Format(e.Since)}, {"row", e.Row}}}
}

func (e SlotDone) line() line {
	return line{slog.LevelInfo, "slot done", attrs{{"slot", e.Slot}, {"seq", e.Seq}}}
}

func (e Exhausted) line() line {
	return line{slog.LevelWarn, "slot given up", attrs{{"slot", e.Slot}, {"attempts", e.Attempts}}}
}

func (e Postponed) line() line {
	return line{slog.LevelInfo, "next attempt postponed", attrs{
		{"slot", e.Slot}, {"attempts", e.Attempts}, {"after", store.Format(e.After)},
	}}
}
