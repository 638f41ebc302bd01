package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
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
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var got string
		err := past(t, p.replica.DSN()).QueryRowContext(t.Context(), query).Scan(&got)
		if err == nil && got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s on the replica = %q, %v, want %q", query, got, err, want)
		}
	}
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
	if before.Clock == "" || before.Clock != again.Clock || before.Skew != defaultSkew {
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
	if after.Clock == before.Clock || !isProcess(after.Clock) || !strings.Contains(after.Clock, " #2 since ") {
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
	must(t, "Check()", l.fitness.Check(within(t)))
	if stamp, err := l.Now(within(t)); err != nil || stamp.Skew != defaultSkew {
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
	l := initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs")})
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
		s.Kill()
		time.Sleep(time.Second) // Processes are told apart by the second in which they began.
		s.Restart()
	}
	if len(clocks) != 2 {
		t.Errorf("clocks before and after a restart: %s, want two", fmt.Sprint(clocks))
	}
}

func TestARecordThatNoSemiSynchronousReplicaHasIsUnknownAndUnseen(t *testing.T) {
	t.Parallel()
	p := startPair(t, "--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-slave-enabled=1", "--rpl-semi-sync-master-timeout=3600000", "--rpl-semi-sync-master-wait-point=AFTER_SYNC")
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
	wantOutcome(t, "Append() without the replica", err, outcome{nil, false}, context.DeadlineExceeded.Error())
	if got, err := other.Get(within(t), "job", 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of a record that the replica lacks = %+v, %v, want ErrNotFound", got, err)
	}
	if got, _, err := other.Tail(within(t), "job", 2); err != nil || len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("Tail() beside a record that the replica lacks = %+v, %v, want the one before", got, err)
	}
	p.replica.Resume()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err = other.Get(within(t), "job", 2); err == nil || time.Now().After(end) {
			break
		}
	}
	must(t, "Get() when the replica is back", err)
}

// read_only doesn't bind administrators: what they store on a server that was replaced is lost.
func TestAnAppendByAnAdministratorToAServerThatTakesNoWritesStoresNothing(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	for i, returns := range []bool{true, false} {
		l := initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs"), Table: newTable(), MaxConns: 1})
		l.plain = !returns
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
		mysqlpeer.Exec(t, s.DSN(), "SET GLOBAL read_only = 1")
		wantOutcome(t, fmt.Sprintf("Append() %d, returning %v", i, returns), l.Append(within(t), storetest.Grant("job", 2)), outcome{nil, true}, "takes no writes any more")
		// The connection isn't used again.
		wantOutcome(t, "the next Append()", l.Append(within(t), storetest.Grant("job", 3)), outcome{nil, true}, "read_only is ON")
		mysqlpeer.Exec(t, s.DSN(), "SET GLOBAL read_only = 0")
	}
}
