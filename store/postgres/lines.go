package postgres

import (
	"context"
	"errors"
	"net"
	"time"
)

// asks marks the contexts of connections that are for statements. The driver opens others, to have a statement cancelled that was
// given up.
type asks struct{}

// errNoCancel is why that isn't done behind a pooler.
var errNoCancel = errors.New("PgBouncer 1.18 crashes by requests to cancel: https://github.com/pgbouncer/pgbouncer/issues/822")

// dial opens one.
func (l *Ledger) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // The time was over before this host's turn.
	}
	if ctx.Value(asks{}) == nil && (!l.direct.Load() || l.pooled.Load()) {
		return nil, errNoCancel
	}
	c, err := l.core.Lines.Dial(ctx, network, address, 0)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// linger is how long a statement goes on whose caller has gone: only if the driver can't have the server end it.
func (l *Ledger) linger() time.Duration {
	if l.pooled.Load() {
		return linger
	}
	return 0
}
