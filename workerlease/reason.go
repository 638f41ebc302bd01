package workerlease

import (
	"errors"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Reason says why a lease ended, why a slot was missed, or why it can't be claimed.
type Reason = event.Reason

// Why a lease ended.
const (
	// WindowEnded is the normal end: the last safe moment of the window.
	WindowEnded Reason = "window ended"
	// Stopped: StopLeasing was called, or the context of StartLeasing ended.
	Stopped Reason = "stopped"
	// ClockJumped: the store's clock, or the local one, jumped.
	ClockJumped Reason = "clock jumped"
	// RecordVanished: the lease's record was replaced by another's, or overridden by an
	// operator.
	RecordVanished Reason = "record vanished"
	// Done: the task of Run returned nil, and its Job is done.
	Done Reason = "done"
	// Failed: the task of Run returned an error, or panicked.
	Failed Reason = "failed"
	// Panicked: LeaseAllocated panicked.
	Panicked Reason = "panicked"
	// Ineligible: Options.Eligible found the worker unfit to lead. A slot may be missed by it, too.
	Ineligible Reason = "ineligible"
	// Stalled: the code showed no progress for Options.ProgressWithin.
	Stalled Reason = "no progress"
	// TimedOut: the run of a job has taken longer than Job.Timeout.
	TimedOut Reason = "timed out"
	// Paused: an operator has paused the worker type, at once. A slot may be
	// missed by it, too.
	Paused Reason = "paused"
	// Drained: an operator has drained the host, at once. A slot may be missed by
	// it, too.
	Drained Reason = "drained"
	// AskedToRelease: an operator has asked for the release, or prefers another worker, at once.
	AskedToRelease Reason = "asked to release"
)

// Why a slot was missed.
const (
	// Unreachable: the store didn't answer in time.
	Unreachable Reason = "store unreachable"
	// TooLate: too little was left of the slot, or the process was paused.
	TooLate Reason = "too late"
	// Overrunning: the code of an earlier slot had not returned, here or in another worker whose run then failed.
	Overrunning Reason = "overrun"
	// Poisoned: the newest record of the ledger can't be obeyed.
	Poisoned Reason = "poison"
	// Denied: the store denies access, or the right to append.
	Denied Reason = "access denied"
	// Refused: the store answers, but refuses the operation, because it isn't fit for a
	// ledger or isn't initialised, or because the record is invalid.
	Refused Reason = "refused by the store"
	// Unattended: no worker was there in time to begin the job of the slot, as a worker that came later
	// learns from the ledger.
	Unattended Reason = "no worker in time"
	// StoreWentBack: the store has lost records, or may have, and other workers may work under them.
	StoreWentBack Reason = "store went back"
)

// Why TryClaim can't claim a slot that was not missed: see NotClaimed.
const (
	// HeldByAnother: another worker has the slot, or has claimed the one after it.
	HeldByAnother Reason = "held by another"
	// AlreadyDone: the job of the slot is done.
	AlreadyDone Reason = "done already"
	// PassedOver: the slot was skipped, because the run of an earlier one went on into it.
	PassedOver Reason = "skipped"
	// TooSoon: an attempt has failed, and the next one may not begin yet: see Job.MinRetry.
	TooSoon Reason = "too soon to try again"
	// UsedUp: the slot has been tried as often as Job.MaxAttempts allows.
	UsedUp Reason = "attempts used up"
)

// attemptCause is why an attempt failed whose lease has ended, by the cause of that.
func attemptCause(ended error) store.Cause {
	switch {
	case errors.Is(ended, ErrTimedOut):
		return store.TimedOut
	case errors.Is(ended, ErrLeaseExpired):
		return store.SlotEnded
	case errors.Is(ended, ErrStopped):
		return store.Stopped
	case errors.Is(ended, ErrPaused), errors.Is(ended, ErrDrained), errors.Is(ended, ErrAskedToRelease):
		return store.Ordered
	}
	return store.LeaseLost
}

// causes are the ends of a lease as causes of its context.
var causes = map[machine.Reason]error{
	machine.WindowEnded:    ErrLeaseExpired,
	machine.Stopping:       ErrStopped,
	machine.ClockJumped:    ErrClockJumped,
	machine.CodePanicked:   ErrPanicked,
	machine.RecordVanished: ErrRecordVanished,
	machine.CodeDone:       ErrFinished,
	machine.CodeFailed:     ErrFinished,
	machine.Ineligible:     ErrIneligible,
	machine.Stalled:        ErrStalled,
	machine.TimedOut:       ErrTimedOut,
	machine.Paused:         ErrPaused,
	machine.Drained:        ErrDrained,
	machine.Ordered:        ErrAskedToRelease,
}

func reason(r machine.Reason) Reason { return Reason(r.String()) }
