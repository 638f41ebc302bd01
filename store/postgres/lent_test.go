package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// pooled is a pool of an application, of as many connections as are said.
func pooled(t testing.TB, uri string, most int) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), fmt.Sprintf("%s&pool_max_conns=%d", uri, most))
	must(t, "New()", err)
	t.Cleanup(p.Close)
	return p
}

// The sessions of an application, with settings of its own.
func TestConformanceOnAnApplicationsPool(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	uri := postgrespeer.Database(t)
	for name, open := range map[string]func(testing.TB) Options{
		"pgxpool": func(t testing.TB) Options { return Options{Pool: pooled(t, uri, 4)} },
		"sql.DB": func(t testing.TB) Options {
			p := pooled(t, uri+"&synchronous_commit=off&search_path=pg_temp&timezone=Pacific/Chatham", 4)
			db := sql.OpenDB(stdlib.GetConnector(*p.Config().ConnConfig))
			t.Cleanup(func() { _ = db.Close() })
			return Options{DB: db}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				t.Helper()
				o, table := open(t), newTable()
				o.Table = table
				h := harness(uri, uri, table, 20)
				h.Open = func(t testing.TB) store.Ledger {
					t.Helper()
					return opened(t, o)
				}
				h.Skips = maps.Clone(nulls)
				h.Skips["two paths"] = "TestConformance has them"
				return h
			})
		})
	}
}

// sessions are the settings of a pool's connections that aren't the server's, and what else their sessions have.
func sessions(t *testing.T, p *pgxpool.Pool) string {
	t.Helper()
	var text string
	must(t, "Query()", p.QueryRow(within(t), `SELECT coalesce((SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE source = 'session'), '')
		|| ' prepared: ' || (SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%worker_type%') || ' listening: ' || (SELECT count(*) FROM pg_listening_channels())
		|| ' locks: ' || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') || ' channel: ' || pg_backend_pid()`).Scan(&text))
	return text
}

// givenBack waits until the pool has noticed that nothing is lent: it destroys closed connections in the background.
func givenBack(t *testing.T, p *pgxpool.Pool) {
	t.Helper()
	suites.Eventually(t, "all connections are given back", func() bool { return p.Stat().AcquiredConns() == 0 })
}

func TestTheApplicationsPoolStaysAsItIs(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	p := pooled(t, uri, 1)
	_, err := p.Exec(within(t), "SET synchronous_commit = off; SET search_path = pg_temp; SET client_min_messages = warning; SET timezone = 'Pacific/Chatham'; SET application_name = 'theirs'")
	must(t, "Exec()", err)
	before := sessions(t, p)
	l := initialised(t, Options{Pool: p, Table: newTable()})
	for seq := range int64(5) {
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq+1)))
		_, _, err := l.Tail(within(t), "job", 3)
		must(t, "Tail()", err)
	}
	_, err = l.Trim(within(t), "job", 3)
	must(t, "Trim()", err)
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckPool, store.LevelOK, "names one host")
	documenttest.Finds(t, found, store.CheckTLS, store.LevelSkip, "the application's pool")
	if after := sessions(t, p); after != before || !strings.Contains(after, "synchronous_commit=off") {
		t.Errorf("the session is %q, want %q as before", after, before)
	}
	must(t, "Close()", l.Close(within(t)))
	givenBack(t, p)
	if after := sessions(t, p); after != before {
		t.Errorf("the session is %q after Close, want %q, over the same connection", after, before)
	}
}

func TestAPoolThatIsExhaustedIsNamed(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	p := pooled(t, uri, 1)
	db := sql.OpenDB(stdlib.GetConnector(*p.Config().ConnConfig))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for name, c := range map[string]struct {
		o    Options
		take func() (giveBack func())
		says string
	}{
		"pgxpool": {Options{Pool: p}, func() func() {
			c, err := p.Acquire(within(t))
			must(t, "Acquire()", err)
			return c.Release
		}, "its MaxConns is 1"},
		"sql.DB": {Options{DB: db}, func() func() {
			c, err := db.Conn(within(t))
			must(t, "Conn()", err)
			return func() { _ = c.Close() }
		}, "its MaxOpenConns is 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Table = newTable()
			documenttest.IsExhausted(t, initialised(t, c.o), c.take, c.says)
		})
	}
}

func TestALedgerSaysThatItsPoolIsClosed(t *testing.T) {
	t.Parallel()
	for name, o := range lentOne(t, postgrespeer.Shared(t)) {
		t.Run(name, func(t *testing.T) {
			o.Table = newTable()
			documenttest.EndsWithItsPool(t, initialised(t, o), func() {
				if o.Pool != nil {
					o.Pool.Close()
					return
				}
				must(t, "Close()", o.DB.Close())
			})
		})
	}
}

func TestHowManyConnectionsAreLentAtOnce(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	p := pooled(t, uri, 10)
	l := initialised(t, Options{Pool: p, Table: newTable(), MaxConns: 3})
	documenttest.LendsFew(t, l, 4, func() int { return int(p.Stat().AcquiredConns()) }) // MaxConns, and one that the pool is about to have back
}

func TestAPoolThatIsUnfitIsRefused(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	name, _, _ := strings.Cut(uri[strings.LastIndexByte(uri, '/')+1:], "?")
	execute(t, postgrespeer.Shared(t), "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	l := opened(t, Options{Pool: pooled(t, uri, 2)})
	_, _, err := l.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() of what only reads", err, store.ErrRefused, "lets sessions only read (default_transaction_read_only): name the primary")
	serial := opened(t, Options{Pool: pooled(t, postgrespeer.Shared(t)+"&default_transaction_isolation=serializable", 2)})
	_, _, err = serial.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() at another level", err, store.ErrRefused, "default_transaction_isolation serializable: leave it at read committed")
	documenttest.Is(t, "Tail() at another level", err, store.ErrFinal)
	reading := opened(t, Options{Pool: pooled(t, postgrespeer.Shared(t)+"&default_transaction_read_only=on", 2)})
	_, _, err = reading.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() in sessions that only read", err, store.ErrRefused, "the connections of the application's pool have the default_transaction_read_only on: leave it off")
	latin := opened(t, Options{Pool: pooled(t, postgrespeer.Shared(t)+"&client_encoding=LATIN1", 2)})
	_, _, err = latin.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() over LATIN1", err, store.ErrRefused, "client_encoding LATIN1")
}

// Each statement may go to another process of the server.
func TestAPoolMayLeadToAPooler(t *testing.T) {
	t.Parallel()
	direct := postgrespeer.Shared(t)
	table := newTable()
	l := initialised(t, Options{Pool: pooled(t, postgrespeer.Pooler(t, direct, "transaction"), 3), Table: table})
	for seq := range int64(20) {
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq+1)))
		if got, _, err := l.Tail(within(t), "job", 1); err != nil || len(got) != 1 || got[0].Seq != seq+1 {
			t.Fatalf("Tail() = %v, %v, want the record", got, err)
		}
	}
	if err := l.Watch(within(t), func(string) {}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Watch() behind a pooler = %v, want ErrUnsupported", err)
	}
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckPooler, store.LevelOK, "there is one, which allows transactions")

	// What is given up is ended in the server over another connection, as without a pool of the application's.
	c, err := past(t, direct).Conn(within(t))
	must(t, "Conn()", err)
	defer func() { _ = c.Close() }()
	_, err = c.ExecContext(within(t), "BEGIN; LOCK TABLE "+table)
	must(t, "LOCK", err)
	_, _, err = l.Tail(documenttest.Within(t, 300*time.Millisecond), "job", 1)
	documenttest.Is(t, "Tail() of a table that is locked", err, context.DeadlineExceeded)
	awaits(t, direct, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%"+table+"%' AND state = 'active' AND pid <> pg_backend_pid()", 0)
}

func TestTheHostsOfAPoolAreAsked(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	pool := pooled(t, p.both()+"&target_session_attrs=read-write", 2)
	l := initialised(t, Options{Pool: pool})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckPool, store.LevelOK, "each host")
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelOK, "as was measured")
	standby := opened(t, Options{Pool: pooled(t, p.both(), 2)})
	_, _, err = standby.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() by a pool that leads to a standby", err, store.ErrRefused, "is a standby", "in a pool of the application's target_session_attrs=read-write")

	execute(t, p.standby.URI(), `SELECT pg_promote()`)
	awaits(t, p.standby.URI(), `SELECT pg_is_in_recovery()::int`, 0)
	err = opened(t, Options{Pool: pool}).Append(within(t), storetest.Grant("job", 2))
	documenttest.Says(t, "Append() beside another primary", err, store.ErrRefused, "two servers take writes", p.primary.Addr(), p.standby.Addr())
	found, err = opened(t, Options{DB: stdlib.OpenDBFromPool(pool)}).Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckPool, store.LevelSkip, "the servers that DB may lead to aren't known")
}

func TestAPasswordThatChangesIsAskedFor(t *testing.T) {
	t.Parallel()
	shared := postgrespeer.Shared(t)
	u, err := url.Parse(postgrespeer.Role(t, shared, "CREATE ON SCHEMA public"))
	must(t, "Parse()", err)
	user, table := u.User.Username(), newTable()
	u.User = url.User(user)
	documenttest.AsksForPasswords(t, func(ask func(context.Context) (string, error)) store.Ledger {
		return opened(t, Options{URI: u.String(), Table: table, PasswordFunc: ask})
	}, func(to string) { execute(t, shared, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", user, to)) }, func() {
		execute(t, shared, fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s'", user))
	})
}

func TestAPoolAndAURIAreGivenOneAtATime(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	p := pooled(t, uri, 1)
	for says, o := range map[string]Options{
		"leave them out":             {Pool: p, URI: "postgres://h/d"},
		"Pool and DB are both given": {Pool: p, DB: past(t, uri)},
	} {
		_, err := Open(t.Context(), o)
		documenttest.Says(t, "Open()", err, nil, says)
	}
}

// A server may close connections that are idle. Nothing was sent over them.
func TestAConnectionThatTheServerHasClosedIsReplaced(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	pool := pooled(t, uri, 1)
	own, err := sql.Open("pgx", uri+"&client_encoding=UTF8")
	must(t, "Open()", err)
	t.Cleanup(func() { _ = own.Close() })
	own.SetMaxOpenConns(1)
	for name, o := range map[string]Options{"pgxpool": {Pool: pool}, "DB": {DB: own}} {
		lent := own
		if o.Pool != nil {
			lent = stdlib.OpenDBFromPool(pool)
		}
		o.Table = newTable()
		l := initialised(t, o)
		for seq := range int64(3) {
			if err := l.Append(within(t), storetest.Grant("job", seq+1)); err != nil {
				t.Errorf("%s: Append() after the server has closed what was idle = %v, want nil", name, err)
			}
			closesIdle(t, uri, lent)
		}
	}
}

// closesIdle has the server close the one connection of a pool while it is idle.
func closesIdle(t *testing.T, uri string, lent *sql.DB) {
	t.Helper()
	c, err := lent.Conn(within(t))
	must(t, "Conn()", err)
	var pid int
	must(t, "pg_backend_pid()", c.QueryRowContext(within(t), "SELECT pg_backend_pid()").Scan(&pid))
	_, err = c.ExecContext(within(t), "SET idle_session_timeout = '50ms'")
	must(t, "SET", err)
	must(t, "Close()", c.Close())
	awaits(t, uri, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d", pid), 0)
}
