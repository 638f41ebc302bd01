package workerlease

import "errors"

// The causes with which the context of a lease ends; read them with
// context.Cause.
var (
	// ErrLeaseExpired: the last safe moment of the window came.
	ErrLeaseExpired = errors.New("lease expired")
	// ErrStopped: leasing was stopped.
	ErrStopped = errors.New("leasing stopped")
	// ErrClockJumped: store time can't be trusted any more.
	ErrClockJumped = errors.New("store clock jumped")
	// ErrRecordVanished: another's record stands where the lease's stood, as after a
	// rollback or a restored backup. The error that Callbacks.Error gets wraps it,
	// too.
	ErrRecordVanished = errors.New("lease record vanished")
	// ErrPanicked: LeaseAllocated panicked. The error that Callbacks.Error gets for
	// a panic of either callback wraps it, too.
	ErrPanicked = errors.New("lease callback panicked")
	// ErrFinished: the task of Run has returned.
	ErrFinished = errors.New("task finished")
)

// ErrNotReleased is wrapped by an error of StopLeasing, Run and Claim.Release if it is not
// known that the lease was released. It then ends by itself, when its window does.
var ErrNotReleased = errors.New("the lease may not have been released")
