package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// brief bounds operations that can't succeed.
const brief = time.Second

// pair is a primary with a replica, and a worker who may use the database jobs, but not write where others may not.
type pair struct {
	primary, replica *mysqlpeer.Server
	login            string // of the worker, in DSNs
}

// semiSynchronous are the flags with which nobody sees a record before the replica has it.
var semiSynchronous = []string{
	"--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-slave-enabled=1", "--rpl-semi-sync-master-timeout=3600000", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
}

// startPair starts them, with further flags for both.
func startPair(t *testing.T, flags ...string) pair {
	t.Helper()
	p := pair{
		primary: mysqlpeer.Start(t, mysqlpeer.Options{Flags: append([]string{"--log-bin", "--sync-binlog=1", "--server-id=1"}, flags...)}),
		replica: mysqlpeer.Start(t, mysqlpeer.Options{Flags: append([]string{"--log-bin", "--sync-binlog=1", "--server-id=2", "--log-slave-updates", "--read-only"}, flags...)}),
	}
	_, port, _ := net.SplitHostPort(p.primary.Addr())
	mysqlpeer.Exec(t, p.replica.DSN(), "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+", MASTER_USER = 'root', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1", "START SLAVE")
	mysqlpeer.Exec(t, p.primary.DSN(), "CREATE DATABASE jobs")
	p.login, _, _ = strings.Cut(mysqlpeer.Role(t, p.primary.DSN()+"jobs", "ALL ON jobs.*"), "@")
	return p
}

// dsn is where the worker reaches servers.
func (p pair) uri(addresses ...string) string {
	return "mysql://" + p.login + "@" + strings.Join(addresses, ",") + "/jobs"
}

// both is the URI of both servers, the replica first.
func (p pair) both() string { return p.uri(p.replica.Addr(), p.primary.Addr()) }

// follows waits until the replica has a table.
func (p pair) follows(t *testing.T, query, want string) {
	t.Helper()
	awaits(t, p.replica.DSN(), query, want)
}

func TestAReplicaIsRefusedAndTheServerThatTakesWritesFoundWhereverItIsNamed(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	l := initialised(t, Options{URI: p.both()})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if w := l.Warning(); !strings.Contains(w, "1 replicas are connected, none of them semi-synchronous") {
		t.Errorf("Warning() = %q, want the replica, which isn't semi-synchronous", w)
	}
	p.follows(t, "SELECT COUNT(*) FROM jobs.worker_leases", "1")
	for what, change := range map[string]string{
		"that may only be read": "SET GLOBAL read_only = 1",
		"that takes writes":     "SET GLOBAL read_only = 0",
	} {
		execute(t, p.replica.DSN(), change)
		says := map[bool]string{true: "the server takes no writes (read_only is ON)", false: "is a replica of another one"}[strings.HasSuffix(change, "1")]
		for _, user := range []string{p.uri(p.replica.Addr()), "mysql://root@" + p.replica.Addr() + "/jobs"} {
			wrong := opened(t, Options{URI: user})
			for name, call := range documenttest.Operations(wrong, storetest.Grant("job", 2)) {
				documenttest.Sentinel(t, name+" on a replica "+what, call(within(t)), store.ErrRefused)
			}
			wantOutcome(t, "Append() on a replica "+what, wrong.Append(within(t), storetest.Grant("job", 2)), outcome{store.ErrRefused, true}, says)
			found, err := wrong.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, CheckServer, store.LevelFail, says)
		}
	}
}

func TestAHandleFollowsAFailoverAndShowsAnotherClock(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	l := initialised(t, Options{URI: p.both()})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	before, err := l.Now(within(t))
	must(t, "Now()", err)
	again, err := l.Now(within(t))
	must(t, "Now()", err)
	if before.Clock == "" || before.Clock != again.Clock || before.Skew != sqldb.DefaultSkew {
		t.Errorf("stamps %+v and %+v, want one clock, and the skew of several servers", before, again)
	}
	p.follows(t, "SELECT COUNT(*) FROM jobs.worker_leases", "1")

	// First they change their roles on purpose, while connections stay.
	execute(t, p.primary.DSN(), "SET GLOBAL read_only = 1")
	for name, call := range documenttest.Operations(l, storetest.Grant("job", 2)) {
		if err := call(documenttest.Within(t, brief)); err == nil || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s while no server takes writes = %v, want an error that may pass", name, err)
		}
	}
	promote(t, p.replica)
	if _, err := l.Get(within(t), "job", 1); err != nil {
		t.Errorf("Get() after a failover = %v, want what was acknowledged before", err)
	}
	must(t, "Append() after a failover", l.Append(within(t), storetest.Grant("job", 2)))
	after, err := l.Now(within(t))
	must(t, "Now()", err)
	if after.Clock == before.Clock || !strings.Contains(after.Clock, " #2 since ") {
		t.Errorf("stamps %+v and, after a failover, %+v, want another clock", before, after)
	}
	// Then the new one dies, and the old one takes over without the newest.
	p.replica.Kill()
	if err := l.Append(documenttest.Within(t, brief), storetest.Grant("job", 3)); err == nil || errors.Is(err, store.ErrRefused) {
		t.Errorf("Append() without a server = %v, want an error that may pass", err)
	}
	execute(t, p.primary.DSN(), "SET GLOBAL read_only = 0")
	must(t, "Append() after the way back", l.Append(within(t), storetest.Grant("job", 2)))
}

// A replica that is restarted may take over later.
func TestAReplicaThatWasSeenIsReckonedWith(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	l := opened(t, Options{URI: p.uri(p.primary.Addr())})
	connected := "SELECT VARIABLE_VALUE FROM information_schema.global_status WHERE VARIABLE_NAME = 'Slaves_connected'"
	awaits(t, p.primary.DSN(), connected, "1")
	must(t, "Init()", l.Init(within(t)))
	p.replica.Kill()
	// The primary notices late.
	dump := ""
	must(t, "processlist", past(t, p.primary.DSN()).QueryRowContext(t.Context(), "SELECT ID FROM information_schema.processlist WHERE COMMAND = 'Binlog Dump'").Scan(&dump))
	execute(t, p.primary.DSN(), "KILL "+dump)
	awaits(t, p.primary.DSN(), connected, "0")
	must(t, "Check()", l.core.Fitness.Check(within(t)))
	if stamp, err := l.Now(within(t)); err != nil || stamp.Skew != sqldb.DefaultSkew {
		t.Errorf("Now() while the replica is down = %+v, %v, want the skew of two servers", stamp, err)
	}
}

// promote makes a replica a server that takes writes.
func promote(t *testing.T, s *mysqlpeer.Server) {
	t.Helper()
	mysqlpeer.Exec(t, s.DSN(), "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
}

func TestARestartedServerHasAnotherClock(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	documenttest.HasAnotherClock(t, initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs")}), func() {
		s.Kill()
		time.Sleep(time.Second) // Processes are told apart by the second in which they began.
		s.Restart()
	})
}

func TestARecordThatNoSemiSynchronousReplicaHasIsUnknownAndUnseen(t *testing.T) {
	t.Parallel()
	p := startPair(t, semiSynchronous...)
	l := initialised(t, Options{URI: p.uri(p.primary.Addr())})
	other := opened(t, Options{URI: p.uri(p.primary.Addr())})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if w := l.Warning(); w != "" {
		t.Errorf("Warning() = %q, want none", w)
	}
	if d := l.Durability(); !strings.Contains(d.Failover, "unless none answers for 3600000 ms") {
		t.Errorf("Durability() = %+v, want the replica", d)
	}
	p.replica.Pause()
	err := l.Append(documenttest.Within(t, brief), storetest.Grant("job", 2))
	wantOutcome(t, "Append() without the replica", err, outcome{nil, false}, "deadline exceeded: the server may wait for a semi-synchronous replica")
	if got, err := other.Get(within(t), "job", 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of a record that the replica lacks = %+v, %v, want ErrNotFound", got, err)
	}
	if got, _, err := other.Tail(within(t), "job", 2); err != nil || len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("Tail() beside a record that the replica lacks = %+v, %v, want the one before", got, err)
	}
	p.replica.Resume()
	documenttest.Comes(t, "Get() when the replica is back", func(ctx context.Context, _ int) error { return documenttest.ErrorOf(other.Get(ctx, "job", 2)) })
}

// A server whose replica doesn't answer keeps the sessions of appends whose callers have gone.
func TestNoMoreThanTwoAppendsWaitForAReplica(t *testing.T) {
	t.Parallel()
	p := startPair(t, semiSynchronous...)
	l := initialised(t, Options{URI: p.uri(p.primary.Addr())})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	p.replica.Pause()
	var refused int
	for i := range 8 {
		switch err := l.Append(documenttest.Within(t, brief), storetest.Grant(fmt.Sprint("job", i), 1)); {
		case errors.Is(err, store.ErrNotStored):
			documenttest.Says(t, "Append() beside two that wait", err, store.ErrNotStored, "2 earlier appends have not been answered, whose sessions are in the state")
			refused++
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("Append() %d without the replica = %v, want that it waits, or is refused", i, err)
		}
		for end := time.Now().Add(brief); l.stuck.full() == nil && time.Now().Before(end) && i > 0; {
			time.Sleep(time.Millisecond) // The caller returns a moment before that is noted.
		}
	}
	waiting := mysqlpeer.Exec(t, p.primary.DSN(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'jobs' AND COMMAND = 'Query'")
	if refused != 6 || waiting != "2" {
		t.Errorf("%d appends were refused, and %s sessions wait, want 6 and 2", refused, waiting)
	}
	if _, err := l.Get(within(t), "job", 1); err != nil {
		t.Errorf("Get() beside appends that wait = %v, want the record", err)
	}
	p.replica.Resume()
	suites.Eventually(t, "Append() when the replica is back", func() bool { return l.Append(within(t), storetest.Grant("job", 2)) == nil })
	if _, err := l.Get(within(t), "job0", 1); err != nil {
		t.Errorf("Get() of what waited = %v, want the record", err)
	}
	// A server that doesn't answer at all keeps nobody from the next.
	p.primary.Pause()
	for i := range 4 {
		_ = l.Append(documenttest.Within(t, brief), storetest.Grant("gone", int64(i+1)))
	}
	p.primary.Resume()
	suites.Eventually(t, "Append() after a silence", func() bool { return l.Append(within(t), storetest.Grant("job", 3)) == nil })
}

// read_only doesn't bind administrators: what they store on a server that was replaced is lost.
func TestAnAppendByAnAdministratorToAServerThatTakesNoWritesStoresNothing(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	l := initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs"), MaxConns: 1})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	mysqlpeer.Exec(t, s.DSN(), "SET GLOBAL read_only = 1")
	wantOutcome(t, "Append()", l.Append(within(t), storetest.Grant("job", 2)), outcome{nil, true}, "takes no writes any more")
	// The connection isn't used again.
	wantOutcome(t, "the next Append()", l.Append(within(t), storetest.Grant("job", 3)), outcome{nil, true}, "read_only is ON")
}

// A replica was promoted, and the old primary goes on: each has a ledger of its own.
func TestTwoServersThatTakeWritesAreRefused(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	both, turned := p.uri(p.primary.Addr(), p.replica.Addr()), p.both()
	l := initialised(t, Options{URI: both})
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	p.follows(t, "SELECT COUNT(*) FROM jobs.worker_leases", "1")
	other := opened(t, Options{URI: turned})
	must(t, "Append() by another", other.Append(within(t), storetest.Grant("job", 2)))
	p.follows(t, "SELECT COUNT(*) FROM jobs.worker_leases", "2")
	promote(t, p.replica)
	says := "two servers take writes, " + p.primary.Addr() + " and " + p.replica.Addr()

	// Its connections are cut, and lead to the new one then.
	for _, id := range strings.Fields(mysqlpeer.Exec(t, p.primary.DSN(), "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'jobs'")) {
		mysqlpeer.Exec(t, p.primary.DSN(), "KILL "+id)
	}
	awaits(t, p.primary.DSN(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'jobs'", "0")
	for range 2 {
		wantOutcome(t, "Append() on the other side", other.Append(within(t), storetest.Grant("job", 3)), outcome{store.ErrRefused, true}, "two servers take writes")
	}
	for what, uri := range map[string]string{"one order": both, "the other": turned} {
		fresh := opened(t, Options{URI: uri})
		err := fresh.Append(within(t), storetest.Grant("job", 3))
		wantOutcome(t, "Append() of a worker that starts, in "+what, err, outcome{store.ErrRefused, true}, "two servers take writes")
		found, err := fresh.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, CheckServer, store.LevelFail, "two servers take writes")
	}
	documenttest.Says(t, "the next check", l.core.Fitness.Check(within(t)), store.ErrRefused, says)
	wantOutcome(t, "Append() then", l.Append(within(t), storetest.Grant("job", 3)), outcome{store.ErrRefused, true}, says)
	execute(t, p.replica.DSN(), "SET GLOBAL read_only = 1")
	must(t, "Append() when one is stopped", l.Append(within(t), storetest.Grant("job", 3)))
}

// What a server has acknowledged may be lost when another takes its place.
func TestAnotherServerIsAnotherHistory(t *testing.T) {
	t.Parallel()
	history := func(f *facts, uri string) string {
		l := opened(t, Options{URI: uri})
		l.core.Learn(f)
		return l.core.Stamped(store.Stamp{Time: time.Unix(1, 0), Server: "db:3306 #1 since 2026-01-01T00:00:00Z"}).History
	}
	const alone, pair, three = "mysql://w@a/jobs", "mysql://w@a,b/jobs", "mysql://w@a,b,c/jobs"
	flushed := map[string]string{"innodb_flush_log_at_trx_commit": "1"}
	semiSync := map[string]string{"innodb_flush_log_at_trx_commit": "1", "rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_timeout": "3600000"}
	on := map[string]string{"rpl_semi_sync_master_status": "ON"}
	for what, c := range map[string]struct {
		f         *facts
		uri, want string
	}{
		"nothing known":                  {nil, pair, ""},
		"asynchronous":                   {&facts{variables: flushed}, pair, "db:3306 #1"},
		"a server that forgets":          {&facts{variables: map[string]string{"innodb_flush_log_at_trx_commit": "0"}}, alone, "db:3306 #1 since 2026-01-01T00:00:00Z"},
		"semi-synchronous":               {&facts{variables: semiSync, status: on}, pair, ""},
		"one of two replicas":            {&facts{variables: semiSync, status: on}, three, "db:3306 #1"},
		"replicas that the URI lacks":    {&facts{variables: semiSync, status: on}, alone, "db:3306 #1"},
		"not in force":                   {&facts{variables: semiSync}, pair, "db:3306 #1"},
		"a cluster, which has one state": {&facts{variables: map[string]string{"wsrep_on": "ON"}}, pair, ""},
	} {
		if got := history(c.f, c.uri); got != c.want {
			t.Errorf("History with %s = %q, want %q", what, got, c.want)
		}
	}
}
