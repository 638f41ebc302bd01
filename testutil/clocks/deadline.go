package clocks

import (
	"context"
	"errors"
	"time"

	"github.com/benbjohnson/clock"
)

// deadlined is a context that ends at a time of any clock. The mock's own
// contexts have a data race between their end and Err.
type deadlined struct {
	context.Context                 // the parent; Value must not find the inner context
	inner           context.Context // ends when this one does
	deadline        time.Time
}

// errTimedOut is seen by Err only: context.Cause asks the parent, then Err.
var errTimedOut = errors.New("timed out")

func withDeadline(parent context.Context, c clock.Clock, deadline time.Time) (context.Context, context.CancelFunc) {
	inner, end := context.WithCancelCause(parent)
	d := &deadlined{Context: parent, inner: inner, deadline: deadline}
	// The parent's deadline is by the parent's clock, which may differ from this one,
	// so it can't replace the timer.
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		d.deadline = earlier
	}
	left := c.Until(deadline)
	if left <= 0 {
		end(errTimedOut)
		return d, func() {}
	}
	timer := c.AfterFunc(left, func() { end(errTimedOut) })
	unhook := context.AfterFunc(parent, func() { timer.Stop() })
	return d, func() {
		unhook()
		timer.Stop()
		end(context.Canceled)
	}
}

func (d *deadlined) Deadline() (time.Time, bool) { return d.deadline, true }

func (d *deadlined) Done() <-chan struct{} { return d.inner.Done() }

func (d *deadlined) Err() error {
	err := d.inner.Err()
	if err != nil && errors.Is(context.Cause(d.inner), errTimedOut) {
		return context.DeadlineExceeded
	}
	return err
}

// AfterFunc saves package context a goroutine for each derived context.
func (d *deadlined) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.inner, f) }
