package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// brief bounds operations that can't succeed.
const brief = time.Second

// pair is a primary with a standby.
type pair struct {
	primary, standby *postgrespeer.Server
}

// startPair starts them. Commits wait for the standby if synchronous.
func startPair(t *testing.T, synchronous bool) pair {
	t.Helper()
	p := pair{primary: postgrespeer.Start(t, postgrespeer.Options{})}
	p.standby = postgrespeer.Start(t, postgrespeer.Options{Follows: p.primary})
	if synchronous {
		execute(t, p.primary.URI(), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
		execute(t, p.primary.URI(), `SELECT pg_reload_conf()`)
		awaits(t, p.primary.URI(), `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`, 1)
	}
	return p
}

// both is the URI of both servers, the standby first.
func (p pair) both() string {
	return strings.Replace(p.primary.URI(), p.primary.Addr(), p.standby.Addr()+","+p.primary.Addr(), 1)
}

// awaits waits until a query gives a number.
func awaits(t *testing.T, uri, query string, want int) {
	t.Helper()
	suites.Eventually(t, fmt.Sprintf("%s is %d", query, want), func() bool {
		got := -1
		_ = past(t, uri).QueryRowContext(t.Context(), query).Scan(&got)
		return got == want
	})
}

// waiting are the server's processes whose commits wait for a standby.
const waiting = `FROM pg_stat_activity WHERE wait_event = 'SyncRep'`

// What a session says about its commits is what would lose records.
func careless(t *testing.T, uri string) {
	t.Helper()
	for _, setting := range []string{"synchronous_commit = off", "client_min_messages = error"} {
		execute(t, uri, `ALTER DATABASE postgres SET `+setting)
	}
}

func TestARecordThatNoSynchronousStandbyHasIsUnknownAndUnseen(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(t *testing.T, uri string, readOnly bool) Options{
		"by connections of its own": func(_ *testing.T, uri string, readOnly bool) Options { return Options{URI: uri, ReadOnly: readOnly} },
		"by those that are lent": func(t *testing.T, uri string, readOnly bool) Options {
			t.Helper()
			return Options{Pool: pooled(t, uri, 6), ReadOnly: readOnly}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isUnknownAndUnseen(t, of)
		})
	}
}

func isUnknownAndUnseen(t *testing.T, of func(t *testing.T, uri string, readOnly bool) Options) {
	t.Helper()
	p := startPair(t, true)
	careless(t, p.primary.URI())
	l := initialised(t, of(t, p.primary.URI(), false))
	other := opened(t, of(t, p.primary.URI(), false))
	looking := opened(t, of(t, p.primary.URI(), true))
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if _, _, err := other.Tail(within(t), "job", 1); err != nil {
		t.Fatalf("Tail() = %v, want nil", err)
	}
	if _, err := looking.WorkerTypes(within(t)); err != nil {
		t.Fatalf("WorkerTypes() = %v, want nil", err)
	}
	p.standby.Pause()

	err := l.Append(documenttest.Within(t, brief), storetest.Grant("job", 2))
	unknown(t, "Append() without the standby", err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append() without the standby = %v, want a deadline: its commit waits, whatever synchronous_commit is", err)
	}
	// What was given up here isn't left waiting there.
	awaits(t, p.primary.URI(), `SELECT count(*) `+waiting, 0)

	// Somebody ends the wait. The server reports success to who is still there.
	done := make(chan error, 1)
	ctx := within(t)
	go func() { done <- l.Append(ctx, storetest.Grant("other", 1)) }()
	awaits(t, p.primary.URI(), `SELECT count(*) `+waiting, 1)
	if got, err := looking.Get(within(t), "other", 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of a record whose commit waits = %+v, %v, want ErrNotFound", got, err)
	}
	execute(t, p.primary.URI(), `SELECT pg_cancel_backend(pid) `+waiting)
	err = <-done
	unknown(t, "Append() whose wait was ended", err)
	documenttest.Says(t, "Append() whose wait was ended", err, nil, "wait no longer for a synchronous standby")

	// By now the primary shows both, and a failover would lose both. Who decides by them doesn't see them.
	for _, workerType := range []string{"job", "other"} {
		seq := map[string]int64{"job": 2, "other": 1}[workerType]
		if got, err := looking.Get(within(t), workerType, seq); err != nil {
			t.Errorf("Get(%s) for people = %+v, %v, want the record that the primary has", workerType, got, err)
		}
		got, err := other.Get(documenttest.Within(t, brief), workerType, seq)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get(%s) of a record that the standby lacks = %+v, %v, want a deadline", workerType, got, err)
		}
		records, _, err := other.Tail(documenttest.Within(t, brief), workerType, 2)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Tail(%s) of a record that the standby lacks = %+v, %v, want a deadline", workerType, records, err)
		}
	}
	// Nor if their own wait is ended.
	awaits(t, p.primary.URI(), `SELECT count(*) `+waiting, 0)
	go func() { done <- documenttest.ErrorOf(other.Get(ctx, "other", 1)) }()
	awaits(t, p.primary.URI(), `SELECT count(*) `+waiting, 1)
	execute(t, p.primary.URI(), `SELECT pg_cancel_backend(pid) `+waiting)
	documenttest.Says(t, "Get() whose wait was ended", <-done, nil, "wait no longer for a synchronous standby")

	p.standby.Resume()
	for _, workerType := range []string{"job", "other"} {
		seq := map[string]int64{"job": 2, "other": 1}[workerType]
		if _, err := other.Get(within(t), workerType, seq); err != nil {
			t.Errorf("Get(%s) when the standby is back = %v, want the record", workerType, err)
		}
	}
}

// The driver can't have a statement ended through a pooler.
func TestWhatIsGivenUpBehindAPoolerIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	uri := postgrespeer.Pooler(t, p.primary.URI(), "transaction")
	l := initialised(t, Options{URI: uri})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	p.standby.Pause()
	for i := range 3 {
		err := l.Append(documenttest.Within(t, brief), storetest.Grant("job", int64(i)+2))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "synchronous standby (synchronous_standby_names is *)") {
			t.Errorf("Append() without the standby = %v, want a deadline, and what it waits for", err)
		}
	}
	awaits(t, p.primary.URI(), `SELECT count(*) `+waiting, 0)
	p.standby.Resume()
	must(t, "Append() when the standby is back", l.Append(within(t), storetest.Grant("job", 9)))
}

func TestALockThatSomebodyHoldsIsNamedAndNotWaitedForLong(t *testing.T) {
	t.Parallel()
	direct := postgrespeer.Database(t)
	initialised(t, Options{URI: direct})
	pooled := postgrespeer.Pooler(t, direct, "transaction")
	const key, table = `INSERT INTO worker_leases VALUES ('job', %d, '{}')`, `LOCK TABLE worker_leases -- %d`
	for i, c := range []struct{ uri, held string }{{direct, key}, {pooled, key}, {direct, table}, {pooled, table}} {
		l := opened(t, Options{URI: c.uri})
		must(t, "Check()", l.core.Fitness.Check(within(t)))
		tx, err := past(t, direct).BeginTx(t.Context(), nil)
		must(t, "Begin()", err)
		_, err = tx.ExecContext(t.Context(), fmt.Sprintf(c.held, i+1))
		must(t, c.held, err)
		r := storetest.Grant("job", int64(i)+1)
		if i < 3 {
			documenttest.Says(t, "Append()", l.Append(within(t), r), store.ErrNotStored, "lock timeout", "pg_stat_activity say whose")
		} else {
			// What a statement sets comes after it has got the lock of the table. But it is ended with its caller.
			documenttest.Is(t, "Append()", l.Append(documenttest.Within(t, brief), r), context.DeadlineExceeded)
			awaits(t, direct, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`, 0)
		}
		must(t, "Rollback()", tx.Rollback())
	}
}

// unknown demands an error after which a record may be stored or not.
func unknown(t *testing.T, what string, err error) {
	t.Helper()
	documenttest.Sentinel(t, what, err, nil)
	if errors.Is(err, store.ErrNotStored) {
		t.Errorf("%s = %v, want an outcome that is unknown", what, err)
	}
}

func TestAStandbyIsRefusedAndThePrimaryFoundWhereverItIsNamed(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	l := initialised(t, Options{URI: p.both()})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if w := l.Warning(); !strings.Contains(w, "no standby is synchronous: a failover may lose the newest records") {
		t.Errorf("Warning() = %q, want the standby, which isn't synchronous", w)
	}
	awaits(t, p.standby.URI(), `SELECT count(*) FROM worker_leases`, 1)

	wrong := opened(t, Options{URI: p.standby.URI()})
	for name, call := range documenttest.Operations(wrong, storetest.Grant("job", 2)) {
		documenttest.Sentinel(t, name+" on a standby", call(within(t)), store.ErrRefused)
	}
	unfit := wrong.Append(within(t), storetest.Grant("job", 2))
	if !errors.Is(unfit, store.ErrNotStored) {
		t.Errorf("Append() on a standby = %v, want ErrNotStored", unfit)
	}
	found, err := wrong.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckServer, store.LevelFail, "the server is a standby (pg_is_in_recovery) → name the primary, or all servers")

	// A pooler may send any statement to another server.
	c, err := pgx.Connect(within(t), p.standby.URI())
	must(t, "Connect()", err)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	d := l.dialect(false)
	for name, s := range map[string]struct {
		text string
		args []any
	}{
		"Get":         {d.Get.Text, []any{"job", int64(1)}},
		"Get of none": {d.Get.Text, []any{"job", int64(7)}},
		"Tail":        {d.Tail.Text, []any{"job", int64(1)}},
		"Page":        {d.Page.Text, []any{"job", int64(0), int64(9)}},
		"WorkerTypes": {d.WorkerTypes.Text, nil},
		"Now":         {d.Now.Text, nil},
		"Presences":   {d.Presences.Text, []any{"job"}},
	} {
		rows, err := c.Query(within(t), s.text, append([]any{pgx.QueryExecModeExec}, s.args...)...)
		n := 0
		for err == nil && rows.Next() {
			n++
		}
		if err == nil {
			err = rows.Err()
		}
		if m := l.meaning(err); n > 0 || err == nil || m.Text != errStandby.Why || m.Is != nil {
			t.Errorf("%s on a standby = %d rows, %v (%+v), want an error that says so", name, n, err, m)
		}
	}
}

func TestAHandleFollowsAFailoverAndShowsAnotherClock(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	l := initialised(t, Options{URI: p.both()})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	before, err := l.Now(within(t))
	must(t, "Now()", err)
	again, err := l.Now(within(t))
	must(t, "Now()", err)
	if before.Clock == "" || before.Clock != again.Clock || before.Skew != sqldb.DefaultSkew {
		t.Errorf("stamps %+v and %+v, want one clock, and the skew of several servers", before, again)
	}
	p.primary.Kill()
	for name, call := range documenttest.Operations(l, storetest.Grant("job", 2)) {
		if err := call(documenttest.Within(t, brief)); err == nil || errors.Is(err, store.ErrRefused) {
			t.Errorf("%s without a primary = %v, want an error that may pass", name, err)
		}
	}
	execute(t, p.standby.URI(), `SELECT pg_promote()`)
	execute(t, p.standby.URI(), `ALTER SYSTEM SET synchronous_standby_names = ''`)
	execute(t, p.standby.URI(), `SELECT pg_reload_conf()`)
	if _, err := l.Get(within(t), "job", 1); err != nil {
		t.Errorf("Get() after a failover = %v, want what was acknowledged before", err)
	}
	must(t, "Append() after a failover", l.Append(within(t), storetest.Grant("job", 2)))
	after, err := l.Now(within(t))
	must(t, "Now()", err)
	if before.History != "1" || after.History != "2" {
		t.Errorf("histories %q and, after a failover, %q, want the timelines 1 and 2: one of several standbys may lack records", before.History, after.History)
	}
	if after.Clock == before.Clock || !strings.HasPrefix(after.Server, p.standby.Addr()+" since ") {
		t.Errorf("stamps %+v and, after a failover, %+v, want another clock", before, after)
	}
}

// A promoted standby beside the old primary has a ledger of its own.
func TestTwoServersThatTakeWritesAreRefused(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	l := initialised(t, Options{URI: p.both()})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	execute(t, p.standby.URI(), `SELECT pg_promote()`)
	awaits(t, p.standby.URI(), `SELECT pg_is_in_recovery()::int`, 0)

	// A handle in use finds out when it connects to the other one, and writes to none but the server that it has used.
	l.last.Store(0) // The standby is tried first.
	l.db.SetConnMaxLifetime(time.Nanosecond)
	if err := l.Append(within(t), storetest.Grant("job", 2)); err != nil && !errors.Is(err, store.ErrRefused) {
		t.Errorf("Append() = %v, want it to be refused, or stored on the old primary", err)
	}
	awaits(t, p.standby.URI(), `SELECT count(*) FROM worker_leases WHERE seq > 1`, 0)
	for name, l := range map[string]*Ledger{"in use": l, "that is new": opened(t, Options{URI: p.both()})} {
		err := l.Append(within(t), storetest.Grant("job", 3))
		documenttest.Says(t, "Append() by a handle "+name, err, store.ErrRefused, "two servers take writes", p.primary.Addr(), p.standby.Addr())
		documenttest.Is(t, "Append() by a handle "+name, err, store.ErrNotStored)
	}
	found, err := opened(t, Options{URI: p.both()}).Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckServer, store.LevelFail, "two servers take writes")
	p.primary.Kill()
	must(t, "Append() when the old primary is gone", l.Append(within(t), storetest.Grant("job", 4)))
}

func TestTheClocksOfNamedStandbysAreMeasured(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	named, unnamed := initialised(t, Options{URI: p.both()}), opened(t, Options{URI: p.primary.URI()})
	found, err := named.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelOK, "as was measured; workers allow for 100ms")
	found, err = unnamed.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelSkip, "not measured: assumed to be apart by 100ms at most (serverSkew), because standbys that the URI doesn't name")

	// One that is a minute ahead.
	known := *named.core.Known()
	known.Clocks = storekit.Clocks{p.standby.Addr(): {Ahead: time.Minute, Within: time.Millisecond}}
	named.core.Learn(&known)
	if w := named.Warning(); !strings.Contains(w, "the clock of "+p.standby.Addr()+" is 1m0s ahead of that of the server in use") {
		t.Errorf("Warning() = %q, want the clock", w)
	}
	if s, err := named.Now(within(t)); err != nil || s.Skew != time.Minute+time.Millisecond {
		t.Errorf("Now() = %+v, %v, want the skew that was measured", s, err)
	}
}

func TestOnlyAStandbyThatIsWaitedForHasAll(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		`b`:                 "all",
		` "b" `:             "all",
		`FIRST 2 (b, c)`:    "all",
		`2(b,c)`:            "all",
		`any 2 ( b , "c" )`: "all",
		`b, c`:              "1 of 2 standbys has",
		`FIRST 1 (b, c)`:    "1 of 2 standbys has",
		`ANY 1 (b, c)`:      "1 of 2 standbys has",
		`ANY 2 (b, c, d)`:   "2 of 3 standbys have",
		`*`:                 "any 1 of the standbys has",
		`FIRST 2 (b, *)`:    "any 2 of the standbys have",
	} {
		r := synchronous(setting)
		got := r.quorum()
		if r.all() {
			got = "all"
		}
		if got != want {
			t.Errorf("synchronous_standby_names = %s: %s, want %s", setting, got, want)
		}
		l := opened(t, Options{URI: "postgres://me@127.0.0.1:1/jobs"})
		l.core.Learn(&facts{SyncNames: setting, SyncStandbys: 1})
		if w, d, h := l.Warning(), l.Durability().Failover, l.history("here since now, timeline 3"); (w == "") != r.all() ||
			strings.HasPrefix(d, "All survive") != r.all() || (h == "") != r.all() || !r.all() && !strings.Contains(w, want) {
			t.Errorf("synchronous_standby_names = %s: warning %q, %q, history %q", setting, w, d, h)
		}
	}
}

// A setting that isn't in the server's files is gone at the next restart.
func TestRemediesLast(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "postgres://me@127.0.0.1:1,127.0.0.1:2/jobs"})
	for setting, f := range map[string]facts{
		"fsync": {Fsync: "off"}, "full_page_writes": {FullPages: "off"}, "synchronous_standby_names": {SyncNames: "ANY 1 (b, c)", SyncStandbys: 1},
	} {
		l.core.Learn(&f)
		flaws := l.durabilityFlaws(&f)
		if i := slices.IndexFunc(flaws, func(w storekit.Flaw) bool { return strings.Contains(w.What, setting) }); i < 0 || !strings.HasPrefix(flaws[i].Remedy, "ALTER SYSTEM SET "+setting) || !strings.Contains(flaws[i].Remedy, "pg_reload_conf()") {
			t.Errorf("of %s: %+v, want a remedy that lasts, and counts", setting, flaws)
		}
	}
}

// A standby that is restarted may take over later.
func TestAStandbyThatWasSeenIsReckonedWith(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	l := initialised(t, Options{URI: p.primary.URI()})
	awaits(t, p.primary.URI(), `SELECT count(*) FROM pg_stat_replication`, 1)
	must(t, "Check()", l.core.Fitness.Check(within(t)))
	p.standby.Kill()
	awaits(t, p.primary.URI(), `SELECT count(*) FROM pg_stat_replication`, 0)
	must(t, "Check()", l.core.Fitness.Check(within(t)))
	if stamp, err := l.Now(within(t)); err != nil || stamp.Skew != sqldb.DefaultSkew {
		t.Errorf("Now() while the standby is down = %+v, %v, want the skew of two servers", stamp, err)
	}
}

func TestARestartedServerHasAnotherClock(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	l := initialised(t, Options{URI: s.URI()})
	documenttest.HasAnotherClock(t, l, func() {
		s.Restart()
		for range 4 {
			_, _ = l.Now(within(t)) // by a connection that has ended, which shows when it is used
		}
	})
}
