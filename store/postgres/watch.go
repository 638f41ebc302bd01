package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

var _ store.Watcher = (*Ledger)(nil)

const (
	// listenPatience bounds how long a connection takes to begin to listen, and with it what waits for that.
	listenPatience = time.Second
	// askAfter is how long a listener hears nothing before it asks whether the server is there.
	askAfter = 30 * time.Second
)

// watches are those that are under way.
type watches struct {
	mu  sync.RWMutex
	all map[*watch]bool
	// unlisten ends the listener beside an application's pool; nil if there is none.
	unlisten context.CancelFunc
}

// watch is one. Why its connection ended is sent to ended, which holds one error.
type watch struct {
	changed func(workerType string)
	ended   chan error
}

// Watch calls changed with the worker type of each record that may free a lease, when it is committed: by LISTEN, on
// the connection of the statements, which stays open, and is listened to while it is idle; beside a pool of the application's, on
// one that all watches share. It ends with an error when that connection does, as in a failover,
// or when the server doesn't answer on it in time, which it is asked to every 30 s. Behind a pooler, which may give the connection's process to another client, the error
// matches errors.ErrUnsupported.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	err := fault.Ended(ctx)
	if err == nil && l.core.Runner.Life().Err() == nil {
		err = l.watch(ctx, &watch{changed, make(chan error, 1)})
	}
	switch {
	case ctx.Err() != nil:
		err = fault.Ended(ctx)
	case l.core.Runner.Life().Err() != nil:
		err = store.ErrClosed
	}
	return l.core.Runner.Failed(ctx, "watch", "", err)
}

func (l *Ledger) watch(ctx context.Context, w *watch) error {
	l.watches.add(l, w)
	defer l.watches.remove(l, w)
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.core.Runner.Life(), cancel)()
	if l.core.Lender == nil {
		if err := l.beIdle(both); err != nil {
			return err
		}
	}
	select {
	case err := <-w.ended:
		return err
	case <-both.Done():
		return nil
	}
}

// errPooled is why nobody listens behind a pooler.
var errPooled = fmt.Errorf("%w: a pooler is between here and the server", errors.ErrUnsupported)

// beIdle makes a connection unless there is one. Then it is idle, and listened to.
func (l *Ledger) beIdle(ctx context.Context) error {
	return sqldb.On(ctx, l.db, func(c *conn) error {
		if c.pooled {
			return errPooled
		}
		return nil
	})
}

// again has a connection made for the watches, when one is lost by a statement that was given up.
func (all *watches) again(l *Ledger) {
	if all.each(func(*watch) {}) {
		go func() {
			if err := l.beIdle(l.core.Runner.Life()); err != nil {
				all.end(err)
			}
		}()
	}
}

// end ends those that are under way.
func (all *watches) end(err error) {
	all.each(func(w *watch) { w.end(err) })
}

func (w *watch) end(err error) {
	select {
	case w.ended <- err:
	default:
	}
}

// add begins a watch: the connection stays open from now on. Beside an application's pool there is one more.
func (all *watches) add(l *Ledger, w *watch) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = map[*watch]bool{}
	}
	all.all[w] = true
	switch {
	case l.core.Lender == nil:
		l.db.SetConnMaxIdleTime(0)
	case all.unlisten == nil:
		all.startListener(l)
	}
}

// remove ends a watch.
func (all *watches) remove(l *Ledger, w *watch) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, w)
	switch {
	case len(all.all) > 0:
	case l.core.Lender != nil:
		all.stopListener()
	case l.core.Runner.Life().Err() == nil:
		l.db.SetConnMaxIdleTime(unusedFor)
	}
}

// each visits those that are under way, which don't end meanwhile.
func (all *watches) each(visit func(w *watch)) (any bool) {
	all.mu.RLock()
	defer all.mu.RUnlock()
	for w := range all.all {
		visit(w)
	}
	return len(all.all) > 0
}

// notified passes a notification on.
func (l *Ledger) notified(_ *pgconn.PgConn, n *pgconn.Notification) {
	if n.Channel != l.channel() {
		return
	}
	workerType := n.Payload
	if store.CheckWorkerType(workerType) != nil {
		workerType = "" // Some other program's.
	}
	l.watches.each(func(w *watch) { w.changed(workerType) })
}

// listen takes in notifications until rest is called, if there is a watch. That it can't ends the watches. The pool may find a
// connection idle twice: when a statement ends, and when the next one, which was to have it, has been given up meanwhile.
func (c *conn) listen() {
	if c.rest != nil || c.pooled || c.loan != nil || !c.of.watches.each(func(*watch) {}) {
		return
	}
	ctx, cancel := context.WithCancel(c.of.core.Runner.Life())
	done := make(chan error, 1)
	c.rest = func() error {
		cancel()
		c.rest = nil
		return <-done
	}
	go func() {
		err := c.takeIn(ctx)
		if ctx.Err() != nil && !c.Conn.Conn().IsClosed() {
			err = nil
		} else {
			c.of.watches.end(err)
		}
		done <- err
	}()
}

// takeIn begins to listen, unless the connection does, and takes in notifications until ctx ends.
func (c *conn) takeIn(ctx context.Context) error {
	own := c.Conn.Conn().PgConn()
	if !c.listening {
		if err := c.of.beginToListen(ctx, own); err != nil {
			return err
		}
		c.listening = true
	}
	return c.of.hear(ctx, own)
}

// hear takes in notifications until ctx ends. A connection on which none come is asked again to listen, which changes nothing: what lies
// in between may answer keepalives, and keep it open, for a server that has gone.
func (l *Ledger) hear(ctx context.Context, c *pgconn.PgConn) error {
	for {
		quiet, cancel := l.clock.WithTimeout(ctx, l.askAfter)
		err := c.WaitForNotification(quiet)
		over := quiet.Err() != nil
		cancel()
		if err != nil && over && ctx.Err() == nil && !c.IsClosed() {
			err = l.beginToListen(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}

// beginToListen isn't broken off, because the connection would be lost. The server mustn't end the session for being idle, which is what
// it is for.
func (l *Ledger) beginToListen(ctx context.Context, c *pgconn.PgConn) error {
	begin, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer l.clock.AfterFunc(listenPatience, cancel).Stop()
	return c.Exec(begin, "LISTEN "+l.channel()+catalogued(`; SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'`)).Close()
}
