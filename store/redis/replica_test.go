package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// pair starts a primary and its replica, which has all.
func pair(t *testing.T) (primary, replica *redispeer.Server) {
	t.Helper()
	primary = redispeer.Start(t, redispeer.Options{Flags: []string{"--repl-diskless-sync-delay", "0"}})
	return primary, follower(t, primary, primary.Addr())
}

// follower starts a replica of a primary, which it reaches at an address.
func follower(t *testing.T, primary *redispeer.Server, addr string) *redispeer.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	must(t, "SplitHostPort()", err)
	replica := redispeer.Start(t, redispeer.Options{Flags: []string{"--replicaof", host, port}})
	c := raw(t, primary.URI())
	await(t, "the replica", func() bool {
		return strings.Contains(do(t, c, "INFO", "replication"), ",state=online,") && linked(t, replica)
	})
	return replica
}

// wire passes connections on to an address, until it is cut.
func wire(t *testing.T, to string) (addr string, cut func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var passing sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer func() { _ = to.Close() }()
		_, _ = io.Copy(to, from)
	}
	passing.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			context.AfterFunc(ctx, func() {
				_ = near.Close()
				_ = far.Close()
			})
			passing.Go(func() { pass(near, far) })
			passing.Go(func() { pass(far, near) })
		}
	})
	cut = func() {
		_ = listener.Close()
		cancel()
		passing.Wait()
	}
	t.Cleanup(cut)
	return listener.Addr().String(), cut
}

func linked(t testing.TB, replica *redispeer.Server) bool {
	t.Helper()
	return strings.Contains(do(t, raw(t, replica.URI()), "INFO", "replication"), "master_link_status:up")
}

// claimed is the grant of a key by a claim.
func claimed(seq int64, claim string) store.Record {
	r := storetest.Grant("job", seq)
	r.Claim = claim
	return r
}

// This is what Redis promises, and no more: the record of the first holder is lost, and a second gets the same key.
func TestAFailoverLosesAcknowledgedRecordsIfReplicasAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	primary := redispeer.Start(t, redispeer.Options{Flags: []string{"--repl-diskless-sync-delay", "0"}})
	addr, cut := wire(t, primary.Addr())
	replica := follower(t, primary, addr)
	l := open(t, primary.URI())
	must(t, "Append()", appendTo(t, l, 1))
	wantFinding(t, examined(t, l), CheckDurability, store.LevelWarn, "a failover may lose", "replicas=N")
	if d := l.Durability(); !strings.Contains(d.Failover, "are lost") {
		t.Errorf("Durability() = %+v, want that a failover loses records", d)
	}
	if w := l.Warning(); !strings.Contains(w, "a failover may lose") {
		t.Errorf("Warning() = %q, want that a failover may lose records", w)
	}
	cut()
	must(t, "Append() by the first holder", l.Append(t.Context(), claimed(2, "first")))
	primary.Kill()
	do(t, raw(t, replica.URI()), "REPLICAOF", "NO", "ONE")
	after := open(t, replica.URI())
	if _, err := after.Get(t.Context(), "job", 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() after the failover = %v, want that the acknowledged record is lost", err)
	}
	must(t, "Append() by a second holder", after.Append(t.Context(), claimed(2, "second")))
}

func TestWithReplicasNothingIsWonOrReadThatTheyLack(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	patient := open(t, primary.URI()+"?replicas=1&replicaWait=20s")
	l := open(t, primary.URI()+"?replicas=1&replicaWait=300ms")
	must(t, "Append()", patient.Append(t.Context(), claimed(1, "first")))
	wantFinding(t, examined(t, l), CheckDurability, store.LevelOK)
	if d := l.Durability(); !strings.HasPrefix(d.Failover, "All survive if a replica takes over that") || l.Warning() != "" {
		t.Errorf("Durability() = %+v and Warning() = %q, want that all survive, and none", d, l.Warning())
	}
	replica.Pause()
	err := l.Append(t.Context(), claimed(2, "first"))
	if err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "0 of 1 replicas have it after 300ms") {
		t.Errorf("Append() without the replica = %v, want an unknown outcome", err)
	}
	// The record is there, and not for a worker.
	if n, err := raw(t, primary.URI()).ZCard(t.Context(), l.names.ledger("job")).Result(); n != 2 || err != nil {
		t.Errorf("ZCARD = %d, %v, want both records", n, err)
	}
	for what, read := range map[string]func() error{
		"Get()":  func() error { _, err := l.Get(t.Context(), "job", 2); return err },
		"Tail()": func() error { _, _, err := l.Tail(t.Context(), "job", 1); return err },
		"Page()": func() error { _, err := l.Page(t.Context(), "job", 0, 9); return err },
	} {
		if err := read(); err == nil || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("%s without the replica = %v, want that it isn't known", what, err)
		}
	}
	// People who look don't wait, and a ledger without replicas doesn't either.
	look := openWith(t, Options{URI: primary.URI() + "?replicas=1", ReadOnly: true})
	if records, _, err := look.Tail(t.Context(), "job", 1); err != nil || len(records) != 1 || records[0].Seq != 2 {
		t.Errorf("Tail() by people = %v, %v, want the newest record", records, err)
	}
	replica.Resume()
	await(t, "the replica", func() bool {
		r, err := patient.Get(t.Context(), "job", 2)
		return err == nil && r.Claim == "first"
	})
	primary.Kill()
	do(t, raw(t, replica.URI()), "REPLICAOF", "NO", "ONE")
	after := open(t, replica.URI())
	if r, err := after.Get(t.Context(), "job", 2); err != nil || r.Claim != "first" {
		t.Errorf("Get() after the failover = %+v, %v, want the record that was read before", r, err)
	}
	if err := after.Append(t.Context(), claimed(2, "second")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() after the failover = %v, want ErrConflict", err)
	}
}

// The clocks of two servers may differ, and a worker can't know when it gets the other.
func TestStampsHaveASkewWhereAnotherServerMayTakeOver(t *testing.T) {
	t.Parallel()
	primary, _ := pair(t)
	for uri, want := range map[string]time.Duration{primary.URI(): DefaultSkew, primary.URI() + "?serverSkew=30ms": 30 * time.Millisecond, shared(t): 0} {
		s, err := open(t, uri).Now(t.Context())
		if err != nil || s.Skew != want || s.Granularity != time.Microsecond {
			t.Errorf("Now() by %s = %+v, %v, want a skew of %v", Redact(uri), s, err, want)
		}
	}
}

// A primary that is made a replica keeps its connections. What it has gets old.
func TestAReplicaIsNeverReadFor(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	handles := map[string]*Ledger{}
	for name := range operations {
		handles[name] = open(t, primary.URI())
		must(t, "Tail()", operations["Tail"](t.Context(), handles[name]))
	}
	must(t, "Append()", appendTo(t, handles["Get"], 1))
	_, port, _ := net.SplitHostPort(replica.Addr())
	do(t, raw(t, replica.URI()), "REPLICAOF", "NO", "ONE")
	do(t, raw(t, primary.URI()), "REPLICAOF", "127.0.0.1", port)
	for _, name := range []string{"Get", "Tail", "Page", "Now", "WorkerTypes", "Presences", "Trim"} {
		if err := operations[name](t.Context(), handles[name]); err == nil || !strings.Contains(err.Error(), "is no primary now") {
			t.Errorf("%s by a replica = %v, want that it is none", name, err)
		}
		// The next connection is to whoever has the address then.
		if err := operations[name](t.Context(), handles[name]); err == nil || errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "is a replica of") {
			t.Errorf("%s again = %v, want that it is a failover, which passes", name, err)
		}
	}
	for _, name := range []string{"Append", "Attend", "Leave"} {
		wantRefusal(t, name+" by a replica", operations[name](t.Context(), handles[name]), nil, "READONLY")
	}
	if err := operations["Tail"](t.Context(), open(t, primary.URI())); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Tail() by who has never seen a primary there = %v, want ErrRefused", err)
	}
}

// Two copies and another database need a few rights more.
func TestTheRightsOfTheDocumentationSufficeWithReplicas(t *testing.T) {
	t.Parallel()
	primary, _ := pair(t)
	admin := raw(t, primary.URI())
	args := []any{"ACL", "SETUSER", "worker", "on", ">s3cret-pass", "+set", "+wait", "+select", "+client|setname"}
	for _, r := range documentedRights(t) {
		args = append(args, r)
	}
	do(t, admin, args...)
	uri := strings.Replace(primary.URI(), "redis://", "redis://worker:s3cret-pass@", 1)
	l := openWith(t, Options{URI: strings.TrimSuffix(uri, "/0") + "/1?replicas=1&replicaWait=20s", AppName: "billing"})
	must(t, "Append()", appendTo(t, l, 1))
	must(t, "CheckRights()", l.CheckRights(t.Context()))
	if _, err := l.Get(t.Context(), "job", 1); err != nil {
		t.Errorf("Get() = %v, want nil", err)
	}
	by := examined(t, l)
	for _, check := range []string{store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster} {
		wantFinding(t, by, check, store.LevelOK)
	}
	if list := do(t, admin, "CLIENT", "LIST"); !strings.Contains(list, " name=billing ") || !strings.Contains(list, " db=1 ") {
		t.Errorf("CLIENT LIST = %s, want a client named billing in database 1", list)
	}
	for _, lacking := range []string{"-wait", "-set"} {
		do(t, admin, "ACL", "SETUSER", "worker", lacking)
		if err := l.CheckRights(t.Context()); !errors.Is(err, store.ErrDenied) {
			t.Errorf("CheckRights() with %s = %v, want ErrDenied", lacking, err)
		}
		do(t, admin, "ACL", "SETUSER", "worker", strings.Replace(lacking, "-", "+", 1))
	}
	// The record is stored when WAIT is refused.
	do(t, admin, "ACL", "SETUSER", "worker", "-wait")
	if err := appendTo(t, l, 2); err == nil || errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() without the right to WAIT = %v, want an unknown outcome", err)
	}
	do(t, admin, "ACL", "SETUSER", "worker", "+wait")
	if _, err := l.Get(t.Context(), "job", 2); err != nil {
		t.Errorf("Get() = %v, want the record", err)
	}
}

// What is said of a WAIT says nothing of the write before it. Here another program's script runs between the two.
func TestAWaitThatIsRefusedLeavesTheAppendUnknown(t *testing.T) {
	t.Parallel()
	primary, _ := pair(t)
	admin := raw(t, primary.URI())
	do(t, admin, "CONFIG", "SET", "lua-time-limit", "50")
	busy := func() bool { return goredis.HasErrorPrefix(admin.Do(t.Context(), "PING").Err(), "BUSY") }
	must(t, "Append()", appendTo(t, open(t, primary.URI()), 1)) // From then on the server knows the script.
	l := openWith(t, Options{URI: "redis://" + delayed(t, primary.Addr(), "*3\r\n$4\r\nWAIT\r\n", func() {
		await(t, "the record", func() bool { return admin.ZCard(t.Context(), newNames(DefaultPrefix).ledger("job")).Val() == 2 })
		other := raw(t, primary.URI())
		go other.Do(context.WithoutCancel(t.Context()), "EVAL", "while true do end", 0)
		await(t, "a busy server", busy)
	}) + "?replicas=1"})
	err := appendTo(t, l, 2)
	if err == nil || errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "wait for replicas: BUSY") {
		t.Errorf("Append() whose WAIT was refused = %v, want an unknown outcome", err)
	}
	do(t, admin, "SCRIPT", "KILL")
	await(t, "the end of the script", func() bool { return !busy() })
	if _, err := l.Get(t.Context(), "job", 2); err != nil {
		t.Errorf("Get() = %v, want the record", err)
	}
}

// delayed passes connections on to an address, and calls a function before it passes on, for the first time, what begins with a text.
func delayed(t *testing.T, to, text string, before func()) (addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	t.Cleanup(func() { _ = listener.Close() })
	var once sync.Once
	pass := func(far, near net.Conn) {
		defer func() { _ = far.Close() }()
		for some := make([]byte, 64<<10); ; {
			n, err := near.Read(some)
			if err != nil {
				return
			}
			first, rest, found := strings.Cut(string(some[:n]), text)
			_, _ = io.WriteString(far, first)
			if found {
				once.Do(before)
				_, _ = io.WriteString(far, text+rest)
			}
		}
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return listener.Addr().String()
}

// cluster starts two nodes, of which the first has the slots up to one, and the second the others.
func cluster(t *testing.T, upTo int) (first, second *redispeer.Server) {
	t.Helper()
	o := redispeer.Options{Flags: []string{"--cluster-enabled", "yes"}}
	first, second = redispeer.Start(t, o), redispeer.Start(t, o)
	a, b := raw(t, first.URI()), raw(t, second.URI())
	do(t, a, "CLUSTER", "ADDSLOTSRANGE", 0, upTo)
	do(t, b, "CLUSTER", "ADDSLOTSRANGE", upTo+1, 16383)
	_, port, _ := net.SplitHostPort(second.Addr())
	do(t, a, "CLUSTER", "MEET", "127.0.0.1", port)
	for _, c := range []*goredis.Client{a, b} {
		await(t, "the cluster", func() bool {
			info := do(t, c, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2")
		})
	}
	return first, second
}

func TestAClusterIsFollowedToTheNodeThatHasTheKeys(t *testing.T) {
	t.Parallel()
	flags := []string{"--cluster-enabled", "yes"}
	wantRefusal(t, "Append() to a cluster without slots", appendTo(t, open(t, redispeer.Start(t, redispeer.Options{Flags: flags}).URI()), 1), nil, "CLUSTERDOWN")
	first, second := cluster(t, 16382)
	l := open(t, second.URI())
	must(t, "Append()", appendTo(t, l, 1))
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	s, err := l.Now(t.Context())
	if err != nil || s.Server != first.Addr() || s.Skew != DefaultSkew {
		t.Errorf("Now() = %+v, %v, want a stamp of %s", s, err, first.Addr())
	}
	for _, check := range []string{store.CheckConnection, store.CheckLedger, store.CheckAppend, store.CheckRoster} {
		wantFinding(t, examined(t, l), check, store.LevelOK)
	}
	// Each reading follows, by a handle that knows no other node yet.
	for what, read := range map[string]func(l *Ledger) error{
		"Get()":         func(l *Ledger) error { _, err := l.Get(t.Context(), "job", 1); return err },
		"Tail()":        func(l *Ledger) error { _, _, err := l.Tail(t.Context(), "job", 1); return err },
		"WorkerTypes()": func(l *Ledger) error { _, err := l.WorkerTypes(t.Context()); return err },
		"Presences()":   func(l *Ledger) error { _, err := l.Presences(t.Context(), "job"); return err },
		"Leave()":       func(l *Ledger) error { return l.Leave(t.Context(), "job", []string{"b"}) },
		"Trim()":        func(l *Ledger) error { _, err := l.Trim(t.Context(), "job", 1); return err },
		"CheckRights()": func(l *Ledger) error { return l.CheckRights(t.Context()) },
	} {
		must(t, what, read(open(t, second.URI())))
	}
	// The node that is named first is gone: the other is asked as long as it is there.
	second.Kill()
	must(t, "Tail()", func() error { _, _, err := l.Tail(t.Context(), "job", 1); return err }())
}

// A replica may be told to take writes, which it forgets: connections that were made before it became one are still
// there.
func TestAnAppendToAReplicaThatTakesWritesIsUnknown(t *testing.T) {
	t.Parallel()
	former := redispeer.Start(t, redispeer.Options{})
	primary := redispeer.Start(t, redispeer.Options{Flags: []string{"--repl-diskless-sync-delay", "0"}})
	l := open(t, former.URI())
	must(t, "Append()", appendTo(t, l, 1))
	c := raw(t, former.URI())
	do(t, c, "CONFIG", "SET", "replica-read-only", "no")
	host, port, err := net.SplitHostPort(primary.Addr())
	must(t, "SplitHostPort()", err)
	do(t, c, "REPLICAOF", host, port)
	err = appendTo(t, l, 2)
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "is no primary now") {
		t.Errorf("Append() to a replica that takes writes = %v, want an unknown outcome, since it is no primary", err)
	}
}

// A replica that may take over shows its clock now.
func TestTheClocksOfReplicasAreAsked(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	l := open(t, primary.URI())
	must(t, "Append()", appendTo(t, l, 1))
	f := l.surveyed.Load()
	if f == nil || f.answered != 2 || len(f.silent()) > 0 || f.clocks.Most == 0 {
		t.Fatalf("the check found %+v, want the clocks of both servers", f)
	}
	if by := examined(t, l)[store.CheckServerClocks]; len(by) != 1 || !strings.Contains(by[0].Text, "measured") {
		t.Errorf("Examine() says %+v of the clocks, want what was measured", by)
	}
	// The servers of a machine have one clock: what was measured is planted.
	ahead := survey{clocks: storekit.Distance{Least: 2990 * time.Millisecond, Most: 3 * time.Second, Fast: replica.Addr(), Slow: primary.Addr()}}
	l.surveyed.Store(&ahead)
	if s, err := l.Now(t.Context()); err != nil || s.Skew != 3*time.Second {
		t.Errorf("Now() with a replica 3 s ahead = %+v, %v, want a skew of 3 s", s, err)
	}
	if w := l.Warning(); !strings.Contains(w, "the clock of "+replica.Addr()+" is ahead") {
		t.Errorf("Warning() = %q, want the replica that is ahead", w)
	}
	replica.Pause()
	defer replica.Resume()
	l.surveyed.Store(&survey{clocks: ahead.clocks})
	must(t, "Init()", l.Init(t.Context()))
	if s, err := l.Now(t.Context()); err != nil || s.Skew != 3*time.Second {
		t.Errorf("Now() = %+v, %v, want that a replica which is silent is where it was", s, err)
	}
	wantFinding(t, examined(t, open(t, primary.URI())), store.CheckServerClocks, store.LevelSkip, "no answer came from "+replica.Addr())
}

// Each primary that the URI leads to would grant slots by itself.
func TestAUriThatLeadsToTwoPrimariesIsRefused(t *testing.T) {
	t.Parallel()
	first, second := redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{})
	one, other := redispeer.StartSentinel(t, "leases", first), redispeer.StartSentinel(t, "leases", second)
	for _, sentinels := range []string{one.Addr() + "," + other.Addr(), other.Addr() + "," + one.Addr()} {
		// Somebody who asks, and does nothing else, waits for as long as sentinels take.
		wantFinding(t, examined(t, open(t, "redis+sentinel://"+sentinels+"/leases")), CheckPrimary, store.LevelFail, first.Addr(), second.Addr())
		l := open(t, "redis+sentinel://"+sentinels+"/leases")
		if err := appendTo(t, l, 1); !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrRefused) {
			t.Errorf("Append() = %v, want that nothing is stored while the sentinels may yet agree", err)
		}
		await(t, "the time that sentinels take", func() bool { return l.clock.Since(*l.splitSince.Load()) >= agreeTime })
		wantRefusal(t, "Append()", appendTo(t, l, 1), store.ErrRefused, "two servers take writes")
		wantFinding(t, examined(t, l), CheckPrimary, store.LevelFail, first.Addr(), second.Addr())
	}
	// A sentinel that falls silent meanwhile takes nothing back.
	paused := open(t, "redis+sentinel://"+one.Addr()+","+other.Addr()+"/leases")
	go func() {
		for paused.splitSince.Load() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		other.Pause()
	}()
	wantFinding(t, examined(t, paused), CheckPrimary, store.LevelFail, first.Addr(), second.Addr())
	other.Resume()
	// So it is with a name that has several addresses.
	_, port, _ := net.SplitHostPort(first.Addr())
	l := open(t, "redis://cache.example:"+port)
	l.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1", "127.0.0.2"}, nil }
	addr := first.Addr()
	l.elsewhere.Store(&addr)
	must(t, "Append() to one server with two addresses", appendTo(t, l, 1))
	named, _ := l.candidates(t.Context(), server{})
	if len(named) != 2 {
		t.Errorf("the servers of a name are %q, want both addresses", named)
	}
	if named, _ = l.candidates(t.Context(), server{cluster: true}); len(named) != 1 {
		t.Errorf("the servers of a cluster are %q, want the one in the URI", named)
	}
	do(t, raw(t, second.URI()), "REPLICAOF", "127.0.0.1", port)
	await(t, "an append to the primary alone", func() bool {
		return appendTo(t, open(t, "redis+sentinel://"+one.Addr()+","+other.Addr()+"/leases"), 9) == nil
	})
}

// Workers wait after a change of the history, so there is one only where a change may have lost records.
func TestStampsNameTheHistoryWhereAChangeOfItMayLoseRecords(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	history := func(uri string) string {
		t.Helper()
		s, err := open(t, uri).Now(t.Context())
		must(t, "Now()", err)
		return s.History
	}
	before := history(primary.URI())
	if before == "" {
		t.Error("the history is empty although a failover may lose records")
	}
	if got := history(primary.URI() + "?replicas=1&replicaWait=20s"); got != "" {
		t.Errorf("the history is %q although each replica is waited for", got)
	}
	alone, late := redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{Flags: []string{"--appendfsync", "everysec"}})
	if got := history(alone.URI()); got != "" {
		t.Errorf("the history of one server that syncs each record is %q", got)
	}
	if got := history(late.URI()); got == "" {
		t.Error("the history is empty although a loss of power loses records")
	}
	primary.Kill()
	do(t, raw(t, replica.URI()), "REPLICAOF", "NO", "ONE")
	l := open(t, replica.URI())
	l.sees(1) // It was a replica itself.
	if s, err := l.Now(t.Context()); err != nil || s.History == "" || s.History == before {
		t.Errorf("the history after a failover = %q, %v, want another one than %q", s.History, err, before)
	}
}
