package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// insist runs an append, or a command without a result set, and once more if the
// driver didn't send it because it expected a late reply.
//
// The driver expects the shortest round trip that it has seen, and measures a shorter
// one only every 10 s. So a worker that connected over a slow network would be cut off
// for that long after the network is fast again. The first time the driver gets the
// deadline and sends it to the server, so that an append which waits longer in the
// server isn't stored late. The second time it is only cancelled at the deadline.
func insist(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if ctx.Err() != nil || !errors.Is(err, driver.ErrDeadlineWouldBeExceeded) {
		return err
	}
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	return do(ctx)
}

// withoutDate is a context for reads. With a deadline, the driver would send it along
// as maxTimeMS, and a server that isn't MongoDB may then answer with a partial result
// and no error: FerretDB 1.24 closes the cursor under the find that reads it, so an
// existing record is "not found". A read that is cancelled loses its connection
// instead.
func withoutDate(ctx context.Context) (undated, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return undated{inner, ctx}, func() { stop(); cancel() }
}

// undated is a context for the driver that is cancelled when the caller's ends, but has
// no deadline.
type undated struct {
	context.Context
	caller context.Context
}

// callers is the context of the caller, whose end errors report.
func callers(ctx context.Context) context.Context {
	if u, ok := ctx.(undated); ok {
		return u.caller
	}
	return ctx
}
