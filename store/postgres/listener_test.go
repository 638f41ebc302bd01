package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// listening counts the connections that listen for a ledger, and listener is where they are found.
func listening(l *Ledger) string { return "SELECT count(*) FROM" + listener(l) }

func listener(l *Ledger) string {
	return fmt.Sprintf(` pg_stat_activity WHERE query LIKE 'LISTEN %s%%'`, l.channel())
}

// lentOne are pools of one connection.
func lentOne(t *testing.T, uri string) map[string]Options {
	t.Helper()
	direct := sql.OpenDB(stdlib.GetConnector(*pooled(t, uri, 1).Config().ConnConfig))
	direct.SetMaxOpenConns(1)
	throughPool := stdlib.OpenDBFromPool(pooled(t, uri, 1))
	t.Cleanup(func() { _ = errors.Join(direct.Close(), throughPool.Close()) })
	return map[string]Options{"pgxpool": {Pool: pooled(t, uri, 1)}, "sql.DB": {DB: direct}, "sql.DB of a pgxpool": {DB: throughPool}}
}

// The pool is the application's, whose only connection is free between two operations, whoever watches.
func TestHintsTakeNoConnectionOfThePool(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	for name, o := range lentOne(t, uri) {
		t.Run(name, func(t *testing.T) {
			o.Table = newTable()
			l := initialised(t, o)
			told := hints(t, uri, l)
			watched, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.Watch(watched, func(string) {}) }()
			var free func() error
			if o.Pool != nil {
				c, err := o.Pool.Acquire(within(t))
				must(t, "Acquire()", err)
				free = func() error { c.Release(); return nil }
			} else {
				c, err := o.DB.Conn(within(t))
				must(t, "Conn()", err)
				free = c.Close
			}
			must(t, "Close() of the application's connection", free())
			release := storetest.Grant("job", 1)
			release.Kind, release.WindowStart = store.KindRelease, release.WindowEnd
			must(t, "Append()", l.Append(within(t), release))
			select {
			case got := <-told:
				if got != "job" {
					t.Errorf("hint of %q, want job", got)
				}
			case <-within(t).Done():
				t.Error("no hint came")
			}
			awaits(t, uri, listening(l), 1) // for both watches
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("Watch() = %v, want it to end with its context", err)
			}
			awaits(t, uri, listening(l), 1)
			if o.Pool != nil {
				closed := make(chan struct{})
				go func() { o.Pool.Close(); close(closed) }()
				select {
				case <-closed:
				case <-within(t).Done():
					t.Error("the application's pool can't be closed beside a watch")
				}
			}
		})
	}
}

func TestTheListenerEndsWithTheLastWatch(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	l := initialised(t, Options{Pool: pooled(t, uri, 2), Table: newTable()})
	for range 2 { // It comes again with the next watch.
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Watch(ctx, func(string) {}) }()
		awaits(t, uri, listening(l), 1)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch() = %v, want it to end with its context", err)
		}
		awaits(t, uri, listening(l), 0)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Watch(t.Context(), func(string) {}) }()
	awaits(t, uri, listening(l), 1)
	execute(t, uri, "SELECT pg_terminate_backend(pid) FROM"+listener(l))
	if err := <-ended; err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Watch() whose connection is closed = %v, want an error after which it is tried again", err)
	}
	go func() { ended <- l.Watch(t.Context(), func(string) {}) }()
	awaits(t, uri, listening(l), 1)
	must(t, "Close()", l.Close(within(t)))
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Watch() of a ledger that is closed = %v, want ErrClosed", err)
	}
	awaits(t, uri, listening(l), 0)
}

// A listener is idle. (On a busy machine the server may end its session before it listens: then it is tried again.)
func TestAServerThatEndsIdleSessionsKeepsTheListener(t *testing.T) {
	t.Parallel()
	shared := postgrespeer.Shared(t)
	for _, pool := range []bool{false, true} {
		uri := postgrespeer.Role(t, shared, "CREATE ON SCHEMA public")
		o := Options{URI: uri, Table: newTable()}
		if pool {
			o.URI, o.Pool = "", pooled(t, uri, 2)
		}
		l := initialised(t, o)
		u, err := url.Parse(uri)
		must(t, "Parse()", err)
		execute(t, shared, fmt.Sprintf("ALTER ROLE %s SET idle_session_timeout = '200ms'", u.User.Username()))
		go func() {
			for t.Context().Err() == nil {
				_ = l.Watch(t.Context(), func(string) {})
			}
		}()
		session := func() (pid int) {
			awaits(t, shared, listening(l), 1)
			must(t, "pid", past(t, shared).QueryRowContext(within(t), "SELECT coalesce(max(pid), 0) FROM"+listener(l)).Scan(&pid))
			return pid
		}
		first := session()
		time.Sleep(time.Second)
		if now := session(); now != first {
			t.Errorf("pool %v: session %d listens, and a second later %d: want that it goes on", pool, first, now)
		}
	}
}

// The pool's AfterConnect makes its sessions fit, which that of a listener needn't be, and its BeforeConnect may hang.
func TestTheHooksOfAPoolDoNotKeepItFromListening(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	config := pooled(t, uri+"&default_transaction_isolation=serializable", 2).Config()
	config.ConnConfig.ConnectTimeout = time.Second
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET default_transaction_isolation = 'read committed'")
		return err
	}
	var hangs atomic.Bool
	config.BeforeConnect = func(ctx context.Context, _ *pgx.ConnConfig) error {
		if hangs.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, "NewWithConfig()", err)
	defer p.Close()
	l := initialised(t, Options{Pool: p, Table: newTable()})
	hangs.Store(true)
	if err := l.Watch(t.Context(), func(string) {}); err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Watch() whose BeforeConnect hangs = %v, want an error after which it is tried again", err)
	}
	hangs.Store(false)
	hints(t, uri, l)
}

func TestALedgerDoesWithoutHintsIfNobodyMayListen(t *testing.T) {
	t.Parallel()
	shared := postgrespeer.Shared(t)
	uri := postgrespeer.Role(t, shared, "CREATE ON SCHEMA public")
	var role string
	p := pooled(t, uri, 1)
	must(t, "Scan()", p.QueryRow(within(t), "SELECT current_user").Scan(&role))
	execute(t, shared, fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT 1", role))
	l := initialised(t, Options{Pool: p, Table: newTable()})
	for seq := range int64(3) {
		if err := l.Watch(within(t), func(string) {}); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Watch() without a connection to be had = %v, want an error after which it is tried again", err)
		}
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq+1)))
	}
}
