package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
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
	got := -1
	for end := time.Now().Add(patience); got != want; time.Sleep(10 * time.Millisecond) {
		if err := past(t, uri).QueryRowContext(t.Context(), query).Scan(&got); time.Now().After(end) {
			t.Fatalf("%s = %d, %v, want %d", query, got, err, want)
		}
	}
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
	p := startPair(t, true)
	careless(t, p.primary.URI())
	l := initialised(t, Options{URI: p.primary.URI()})
	other := opened(t, Options{URI: p.primary.URI()})
	looking := opened(t, Options{URI: p.primary.URI(), ReadOnly: true})
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
	if w := l.Warning(); !strings.Contains(w, "1 standby is connected, none of them synchronous") {
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
	if before.Clock == "" || before.Clock != again.Clock || before.Skew != defaultSkew {
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
	if after.Clock == before.Clock || !strings.HasPrefix(after.Server, p.standby.Addr()+" since ") {
		t.Errorf("stamps %+v and, after a failover, %+v, want another clock", before, after)
	}
}

// A standby that is restarted may take over later.
func TestAStandbyThatWasSeenIsReckonedWith(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	l := initialised(t, Options{URI: p.primary.URI()})
	awaits(t, p.primary.URI(), `SELECT count(*) FROM pg_stat_replication`, 1)
	must(t, "Check()", l.fitness.Check(within(t)))
	p.standby.Kill()
	awaits(t, p.primary.URI(), `SELECT count(*) FROM pg_stat_replication`, 0)
	must(t, "Check()", l.fitness.Check(within(t)))
	if stamp, err := l.Now(within(t)); err != nil || stamp.Skew != defaultSkew {
		t.Errorf("Now() while the standby is down = %+v, %v, want the skew of two servers", stamp, err)
	}
}

func TestARestartedServerHasAnotherClock(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	l := initialised(t, Options{URI: s.URI()})
	clocks := map[string]bool{}
	for range 2 {
		stamp, err := l.Now(within(t))
		must(t, "Now()", err)
		ctx, receipt := store.WithReceipt(within(t))
		must(t, "Append()", l.Append(ctx, storetest.Grant("job", int64(len(clocks)+1))))
		_, tailed, err := l.Tail(within(t), "job", 1)
		must(t, "Tail()", err)
		for what, s := range map[string]store.Stamp{"Append": receipt.Stamp(), "Tail": tailed} {
			if s.Clock != stamp.Clock || s.Server != stamp.Server || s.Skew != 0 || s.Granularity != time.Microsecond || s.Time.Before(stamp.Time) {
				t.Errorf("%s gives %+v, and Now before it %+v, want one clock without a skew", what, s, stamp)
			}
		}
		clocks[stamp.Clock] = true
		s.Restart()
		for range defaultConns {
			_, _ = l.Now(within(t)) // by a connection that has ended, which shows when it is used
		}
	}
	if len(clocks) != 2 {
		t.Errorf("clocks before and after a restart: %s, want two", fmt.Sprint(clocks))
	}
}
