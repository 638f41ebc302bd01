package workerlease

import "errors"

// Why the context of a lease has ended: context.Cause returns one of these.
var (
	// ErrLeaseExpired: the last safe moment of the window came.
	ErrLeaseExpired = errors.New("lease expired")
	// ErrStopped: the worker is stopping.
	ErrStopped = errors.New("leasing stopped")
	// ErrClockJumped: samples of store time contradict each other. An error of
	// Callbacks.Error wraps it, too.
	ErrClockJumped = errors.New("store clock jumped")
	// ErrRecordVanished: the lease's record was replaced by another's, as by a rollback
	// or a restored backup, or overridden by an operator. An error of Callbacks.Error wraps it, too.
	ErrRecordVanished = errors.New("lease record vanished")
	// ErrPanicked: LeaseAllocated panicked. The error of Callbacks.Error for a panic of
	// any callback wraps it, too, and has the stack.
	ErrPanicked = errors.New("lease callback panicked")
	// ErrIneligible: Options.Eligible found the worker unfit to lead.
	ErrIneligible = errors.New("worker not eligible")
	// ErrStalled: the code showed no progress for Options.ProgressWithin.
	ErrStalled = errors.New("no progress")
	// ErrTimedOut: the run has taken longer than Job.Timeout.
	ErrTimedOut = errors.New("job timed out")
	// ErrPaused: an operator has paused the worker type, at once.
	ErrPaused = errors.New("worker type paused")
	// ErrDrained: an operator has drained the host, at once.
	ErrDrained = errors.New("host drained")
	// ErrAskedToRelease: an operator has asked for the release, or prefers another worker.
	ErrAskedToRelease = errors.New("asked to release the lease")
	// ErrFinished: the task of Run has returned.
	ErrFinished = errors.New("task finished")
)

// ErrGiveBack is what a task of Run returns to give the rest of its slot to others although nothing has failed.
var ErrGiveBack = errors.New("slot given back")

// ErrNotReleased is wrapped by an error of StopLeasing, Run and Claim.Release if it is not
// known that the lease was released. It then ends by itself, when its window does.
var ErrNotReleased = errors.New("the lease may not have been released")
