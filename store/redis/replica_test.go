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
	wantFinding(t, examined(t, l), CheckDurability, store.LevelWarn, "a failover may lose", "replicas=1")
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
	for _, name := range []string{"Get", "Tail", "Page", "Now", "WorkerTypes", "Presences"} {
		if err := operations[name](t.Context(), handles[name]); err == nil || !strings.Contains(err.Error(), "is no primary now") {
			t.Errorf("%s by a replica = %v, want that it is none", name, err)
		}
		// The next connection is to whoever has the address then.
		if err := operations[name](t.Context(), handles[name]); !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s again = %v, want ErrRefused", name, err)
		}
	}
	for _, name := range []string{"Append", "Attend", "Leave"} {
		wantRefusal(t, name+" by a replica", operations[name](t.Context(), handles[name]), nil, "READONLY")
	}
	// That there is nothing to trim is as true of it.
	if _, err := handles["Trim"].Trim(t.Context(), "job", 1); err != nil {
		t.Errorf("Trim() of nothing by a replica = %v, want nil", err)
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

func TestAClusterIsFollowedToTheNodeThatHasTheKeys(t *testing.T) {
	t.Parallel()
	flags := []string{"--cluster-enabled", "yes"}
	first, second := redispeer.Start(t, redispeer.Options{Flags: flags}), redispeer.Start(t, redispeer.Options{Flags: flags})
	a, b := raw(t, first.URI()), raw(t, second.URI())
	l := open(t, second.URI())
	wantRefusal(t, "Append() to a cluster without slots", appendTo(t, l, 1), nil, "CLUSTERDOWN")
	slots := []any{"CLUSTER", "ADDSLOTS"}
	for slot := range 16383 {
		slots = append(slots, slot)
	}
	do(t, a, slots...)
	do(t, b, "CLUSTER", "ADDSLOTS", 16383)
	_, port, _ := net.SplitHostPort(second.Addr())
	do(t, a, "CLUSTER", "MEET", "127.0.0.1", port)
	for _, c := range []*goredis.Client{a, b} {
		await(t, "the cluster", func() bool {
			info := do(t, c, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2")
		})
	}
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
