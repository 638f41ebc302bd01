package workerlease

import "github.com/slotlease/slotlease/workerlease/internal/machine"

// Reason says why a lease ended, or why a slot was missed.
type Reason string

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
	// Paused: an operator has paused the worker type, at once (see Client.Pause). A slot may be
	// missed by it, too.
	Paused Reason = "paused"
	// Drained: an operator has drained the host, at once (see Client.Drain). A slot may be missed by
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
	// Overrunning: the code of an earlier slot had not returned.
	Overrunning Reason = "overrun"
	// Poisoned: the newest record of the ledger can't be obeyed.
	Poisoned Reason = "poison"
	// Denied: the store denies access, or the right to append.
	Denied Reason = "access denied"
	// Refused: the store answers, but refuses the operation, because it isn't fit for a
	// ledger or isn't initialised, or because the record is invalid.
	Refused Reason = "refused by the store"
)

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
	machine.Paused:         ErrPaused,
	machine.Drained:        ErrDrained,
	machine.Ordered:        ErrAskedToRelease,
}

func reason(r machine.Reason) Reason { return Reason(r.String()) }

// ClockVerdict says what became of samples of the store's time that contradict one
// another.
type ClockVerdict string

// The verdicts.
const (
	// ClockInQuestion: a sample contradicts the earlier ones. A lease that is held ends at
	// once, and the time is as uncertain as the samples are apart, until further ones have
	// decided.
	ClockInQuestion ClockVerdict = "contradicts earlier answers"
	// AnswerDropped: three samples in a row speak against a clock that fewer had ever
	// shown. It was a wrong answer, and is forgotten.
	AnswerDropped ClockVerdict = "an earlier answer was wrong"
	// JumpConfirmed: three samples in a row speak against the clock that was in force.
	// Nothing begins until all that was granted by it is over: at most the longest window
	// in the ledger, or one's own slot, and five minutes.
	JumpConfirmed ClockVerdict = "the clock has jumped"
)
