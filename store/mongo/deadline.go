package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// insist runs an operation, and once more if the driver didn't send it for fear
// that its reply would be late.
//
// The driver goes by the shortest round trip that it has seen, and measures a
// shorter one only every 10 s: a worker that connected while the network was slow
// would be cut off that long after it is fast again. The second time the driver
// isn't told of the deadline, and is cancelled at it. The first time it is, since it
// tells the server to give up by then.
func insist(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if ctx.Err() != nil || !errors.Is(err, driver.ErrDeadlineWouldBeExceeded) {
		return err
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return do(undated{inner, ctx})
}

// undated is a context for the driver that is cancelled when the caller's ends,
// but doesn't say before when that will be.
type undated struct {
	context.Context
	caller context.Context
}

// callers is the context of the caller, whose end is what errors tell of.
func callers(ctx context.Context) context.Context {
	if u, ok := ctx.(undated); ok {
		return u.caller
	}
	return ctx
}
