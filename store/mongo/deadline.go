package mongo

import (
	"context"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// insist runs an operation, and once more if the driver didn't send it because it
// expected a late reply. It takes the operation out of a session of the caller's.
//
// The driver expects the shortest round trip that it has seen, and measures a shorter
// one only every 10 s. So a worker that connected over a slow network would be cut off
// for that long after the network is fast again. The first time the driver gets the
// deadline and, but for finds, sends it to the server, so that an append which waits
// longer in the server isn't stored late. The second time it is only cancelled at the
// deadline.
//
// A connection whose reply is late is kept, since the driver reads that reply for another
// 400 ms before the connection is used again. Only an operation that is cancelled loses
// its connection.
func insist[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	ctx = outsideSessions(ctx)
	value, err := do(ctx)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), saidNotSent) {
		return value, err
	}
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	return do(ctx)
}

// outsideSessions is a context without the session that a caller's own code put into it,
// as mongo.NewSessionContext and WithTransaction do. An append in a transaction would be
// said to be made, and be undone by an abort.
func outsideSessions(ctx context.Context) context.Context {
	if mongo.SessionFromContext(ctx) == nil {
		return ctx
	}
	return mongo.NewSessionContext(ctx, nil)
}

// withoutDate is a context for listings. With a deadline, the driver would send it along
// as maxTimeMS, and a server that isn't MongoDB may then answer with a partial result
// and no error: FerretDB 1.24 closes the cursor under the command that reads it. For a
// find, where an existing record would be "not found", the driver sends no maxTimeMS
// (DRIVERS-2722), unless it is FindOne.
func withoutDate(ctx context.Context) (undated, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return undated{inner, callers(ctx)}, func() { stop(); cancel() }
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
