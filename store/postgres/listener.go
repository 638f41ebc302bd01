package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// Beside an application's pool, all watches of a handle share a connection of their own. The pool's are few, and the application's:
// one that listened would be kept for good, starve who waits for it, and keep the pool from being closed.

// startListener has a connection listen as long as there is a watch. When it can't any more, the watches end with the reason. The
// caller holds mu.
func (all *watches) startListener(l *Ledger) {
	ctx, cancel := context.WithCancel(l.core.Runner.Life())
	all.unlisten = cancel
	go func() {
		err := l.listenBeside(ctx)
		all.mu.Lock()
		defer all.mu.Unlock()
		if ctx.Err() != nil {
			return // There is no watch, or there is another listener.
		}
		for w := range all.all {
			w.end(err)
		}
		all.stopListener()
	}()
}

// stopListener ends it. The caller holds mu.
func (all *watches) stopListener() {
	if all.unlisten != nil {
		all.unlisten()
		all.unlisten = nil
	}
}

// listenBeside takes in notifications on a connection of its own until ctx ends.
func (l *Ledger) listenBeside(ctx context.Context) error {
	config, err := l.poolsConfig(ctx)
	if err != nil {
		return err
	}
	own := &config.Config
	own.ConnectTimeout = cmp.Or(own.ConnectTimeout, l.address.ConnectTimeout)
	own.OnNotification = l.notified
	// The pool's own handler may ask the server to end what is under way, and hit what comes next.
	own.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	theirs := own.ValidateConnect
	own.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if theirs != nil {
			if err := theirs(ctx, c); err != nil {
				return err
			}
		}
		_, err := l.takesWrites(ctx, c)
		return err
	}
	c, err := pgconn.ConnectConfig(ctx, own)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := l.clock.WithTimeout(context.WithoutCancel(ctx), listenPatience)
		defer cancel()
		_ = c.Close(end)
	}()
	if c.CustomData()[isPooled] != nil {
		return errPooled
	}
	if err := l.beginToListen(ctx, c); err != nil {
		return err
	}
	return l.hear(ctx, c)
}

// poolsConfig is how the application's pool connects now. Of a DB a connection that it lends tells, which is given back at once.
func (l *Ledger) poolsConfig(ctx context.Context) (config *pgx.ConnConfig, err error) {
	limit := l.address.ConnectTimeout
	if l.config != nil {
		limit = cmp.Or(l.config.ConnectTimeout, limit)
	}
	ctx, cancel := l.clock.WithTimeout(ctx, limit) // The application's code runs in it.
	defer cancel()
	if l.config != nil {
		config = l.config.Copy()
		return config, l.beforeConnect(ctx, config)
	}
	err = sqldb.On(ctx, l.aside, func(k *conn) error {
		config = k.Conn.Conn().Config()
		return nil
	})
	return config, err
}
