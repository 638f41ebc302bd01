package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// insist runs an append, or a command without a result set, and once more if the
// driver didn't send it for fear that its reply would be late.
//
// The driver goes by the shortest round trip that it has seen, and measures a
// shorter one only every 10 s: a worker that connected while the network was slow
// would be cut off that long after it is fast again. The second time the driver
// isn't told of the deadline, and is cancelled at it. The first time it is, since it
// tells the server to give up by then: an append that waits in the server for
// longer is not stored late.
func insist(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if ctx.Err() != nil || !errors.Is(err, driver.ErrDeadlineWouldBeExceeded) {
		return err
	}
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	return do(ctx)
}

// withoutDate is a context for reads. Told of a deadline, the driver sends it along
// as maxTimeMS, and a server that speaks MongoDB's protocol without being MongoDB
// may then answer with what it has found by that time, and no error: FerretDB 1.24
// closes the cursor under the find that reads it, so a record that is there is "not
// found". A read that is cancelled loses its connection instead.
func withoutDate(ctx context.Context) (undated, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return undated{inner, ctx}, func() { stop(); cancel() }
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
