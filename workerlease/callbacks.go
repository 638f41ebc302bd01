package workerlease

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Callbacks are the user's code. For one worker, LeaseAllocated is never called
// before all callbacks of the lease before have returned; if they haven't when
// its window ends, the worker claims nothing more and reports an [Overrun].
type Callbacks struct {
	// LeaseAllocated is called, on a goroutine of its own, when a slot that this
	// worker won has begun: store time is surely inside the window right before
	// the call. Required.
	//
	// The context ends at the last safe moment of the window, with a cause
	// (ErrLeaseExpired, ErrStopped, ErrClockJumped, ErrRecordVanished,
	// ErrPanicked; for the task of Run, when it has returned, ErrFinished): the work must
	// have stopped then. It carries the values of the context of StartLeasing.
	//
	// Returning ends nothing: the lease is held, and the context lives, up to
	// the last safe moment. Start the work and return, and stop it in
	// LeaseExpired; or block until the context ends: both are fine. A panic ends
	// the lease at once; nothing is released, and the next slot is joined as
	// usual.
	LeaseAllocated func(ctx context.Context, l Lease)

	// LeaseExtended is told that the lease ends later than was known: l.Expiry is when,
	// and l.Slot the slot that it is for then. With FailoverWithin that is every part
	// of the slot, with Continuous every slot. It is called on a goroutine of its own,
	// one call at a time, after LeaseAllocated began and before the lease ends (a call may
	// be just beginning then); should it take long, only the newest extension is told
	// after it.
	// It must return before another lease begins, as the other two must. A panic is
	// reported, and ends nothing. Optional: Lease.Valid and Lease.Remaining know of
	// extensions anyway.
	LeaseExtended func(l Lease)

	// LeaseExpired is called exactly once for each call of LeaseAllocated, after
	// that began and after its context was cancelled, on a goroutine of its own.
	// It comes on time even if LeaseAllocated still runs, and also if it panicked.
	// Optional.
	LeaseExpired func(l Lease, why Reason)

	// Error is told of troubles with the store, the clock and the callbacks, for
	// information: leasing goes on. It is called on the worker's goroutine, must
	// return quickly and must not panic.
	Error func(error)
}

// guarded calls f and turns a panic into an error.
func guarded(name string, f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v\n%s", name, ErrPanicked, p, debug.Stack())
		}
	}()
	f()
	return nil
}
