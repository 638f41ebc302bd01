package mongo

import "context"

// undated is a context for the driver that is cancelled when the caller's ends,
// but doesn't say before when that will be.
//
// The driver takes a deadline for more than a bound: it doesn't even send what it
// thinks can't come back in time, by the shortest round trip that it has seen, and
// it learns of a shorter one only every 10 s. A worker that connected while the
// network was slow would be cut off that long after it is fast again.
type undated struct {
	context.Context
	caller context.Context
}

// withoutDeadline returns the context for the driver, and what must be called
// when the operation is over.
func withoutDeadline(ctx context.Context) (undated, func()) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return undated{inner, ctx}, func() {
		stop()
		cancel()
	}
}

// callers is the context of the caller, whose end is what errors tell of.
func callers(ctx context.Context) context.Context {
	if u, ok := ctx.(undated); ok {
		return u.caller
	}
	return ctx
}
