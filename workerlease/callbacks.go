package workerlease

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Callbacks are the user's code. For one worker, LeaseAllocated is not called before all
// callbacks of the last lease have returned. If they haven't when its window ends, the
// worker claims nothing more until they have, and reports an [Overrun].
type Callbacks struct {
	// LeaseAllocated is called on its own goroutine when a slot that this worker won has
	// begun. Right before the call, store time is surely inside the window. Required.
	//
	// The context ends at the last safe moment of the window. The work must have stopped
	// by then. context.Cause gives the reason: ErrLeaseExpired, ErrStopped,
	// ErrClockJumped, ErrRecordVanished, ErrIneligible, ErrStalled, ErrPaused, ErrDrained, ErrAskedToRelease or
	// ErrPanicked; after a task of Run has returned, ErrFinished. The context has the values of the context of StartLeasing.
	//
	// Returning ends nothing: the lease is held up to the last safe moment. So either
	// start the work, return, and stop it in LeaseExpired; or block until the context
	// ends. A panic ends the lease at once; nothing is released, and the worker contends
	// for the next slot as usual.
	LeaseAllocated func(ctx context.Context, l Lease)

	// LeaseExtended is called when the lease has been extended, to l.Expiry in l.Slot: with
	// FailoverWithin in each part of the slot, with Continuous in each slot. It is called
	// on its own goroutine, one call at a time, after LeaseAllocated began and before the
	// lease ends; a call may just be beginning then. After a call that took long, only the
	// newest extension is reported. A panic is reported, and ends nothing. Optional:
	// Lease.Valid and Lease.Remaining count extensions anyway.
	LeaseExtended func(l Lease)

	// LeaseExpired is called exactly once for each call of LeaseAllocated, on its own
	// goroutine, after that began and its context ended. It is called on time even if
	// LeaseAllocated still runs, and also if it panicked. Optional.
	LeaseExpired func(l Lease, why Reason)

	// Error gets errors of the store, the clock and the callbacks, for information:
	// leasing goes on. It is called by one goroutine at a time, must return quickly (see
	// Observer for the cost of one that blocks), and must not panic. Optional.
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
