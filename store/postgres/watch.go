package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

var _ store.Watcher = (*Ledger)(nil)

// Watch calls changed with the worker type of each record that may free a lease, when it is committed: on the
// goroutine of Watch, by LISTEN. It has a connection of its own, besides those of Options.MaxConns, and costs
// nothing while nothing happens. It ends with an error when that connection does, as in a failover. Behind a pooler,
// which may give the connection's process to another client, the error matches errors.ErrUnsupported.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	err := fault.Ended(ctx)
	if err == nil && l.life.Err() == nil {
		err = l.watch(both, changed)
	}
	switch {
	case ctx.Err() != nil:
		err = fault.Ended(ctx)
	case l.life.Err() != nil:
		err = store.ErrClosed
	}
	return l.runner.Failed(ctx, "watch", "", err)
}

func (l *Ledger) watch(ctx context.Context, changed func(workerType string)) error {
	config := l.config.Copy()
	l.lines.sort(&config.Config)
	c, err := pgx.ConnectConfig(context.WithValue(ctx, dialled{}, true), config)
	if err != nil {
		return err
	}
	defer func() {
		// The driver would wait for the server.
		_ = c.PgConn().Conn().Close()
		_ = c.Close(context.WithoutCancel(ctx))
		<-c.PgConn().CleanupDone()
	}()
	var pid uint32
	if err := c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	if pid != c.PgConn().PID() {
		return fmt.Errorf("%w: a pooler is between here and the server", errors.ErrUnsupported)
	}
	if _, err := c.Exec(ctx, "LISTEN "+l.channel()); err != nil {
		return err
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if ctx.Err() == nil && n.Channel == l.channel() {
			workerType := n.Payload
			if store.CheckWorkerType(workerType) != nil {
				workerType = "" // Some other program's.
			}
			changed(workerType)
		}
	}
}
