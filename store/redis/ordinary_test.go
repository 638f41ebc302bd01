package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/redispeer"
)

// A backup by redis-cli --rdb looks like a replica for its time, and lets the server begin another history: nothing is lost, and
// nobody takes over.
func TestABackupIsNoReplica(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec", "no"} {
		s := redispeer.Start(t, redispeer.Options{Flags: []string{"--appendfsync", fsync, "--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "1"}})
		l, admin := open(t, s.URI()), raw(t, s.URI())
		must(t, "Append()", appendTo(t, l, 1))
		if fsync == "no" { // So does a server before 7.0, which says less at a time.
			must(t, "with()", l.links.with(t.Context(), func(k *link) (bool, error) { k.sections = false; return true, nil }))
		}
		before, err := l.Now(t.Context())
		must(t, "Now()", err)
		warned, was := l.Warning(), do(t, admin, "INFO", "replication")
		backup, err := net.Dial("tcp", s.Addr())
		must(t, "Dial()", err)
		_, err = backup.Write([]byte("SYNC\r\n"))
		must(t, "SYNC", err)
		await(t, "the backup", func() bool {
			return strings.Contains(do(t, admin, "INFO", "replication"), "connected_slaves:1")
		})
		for _, when := range []string{"during", "after", "long after"} {
			must(t, "Append()", appendTo(t, l, int64(2+len(when))))
			now, err := l.Now(t.Context())
			must(t, "Now()", err)
			if now.History != before.History || now.Skew != 0 {
				t.Errorf("Now() %s a backup, %s = %+v, want the history %q and no skew", when, fsync, now, before.History)
			}
			must(t, "Init()", l.Init(t.Context()))
			if got := l.Warning(); got != warned {
				t.Errorf("Warning() %s a backup, %s = %q, want %q", when, fsync, got, warned)
			}
			if when == "during" {
				must(t, "Close()", backup.Close())
				await(t, "the end of the backup", func() bool {
					return strings.Contains(do(t, admin, "INFO", "replication"), "connected_slaves:0")
				})
			} else {
				await(t, "that the server forgets the backup", func() bool {
					return strings.Contains(do(t, admin, "INFO", "replication"), "repl_backlog_active:0")
				})
			}
		}
		if parseInfo(was).history == parseInfo(do(t, admin, "INFO", "replication")).history {
			t.Error("the server's replication has its name of before: the test shows nothing")
		}
	}
}

// Who was a replica for a moment has the data of another, whatever is the process.
func TestAServerThatWasAReplicaHasAnotherHistory(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{Flags: []string{"--appendfsync", "everysec"}})
	l, admin := open(t, s.URI()), raw(t, s.URI())
	before, err := l.Now(t.Context())
	must(t, "Now()", err)
	do(t, admin, "REPLICAOF", "127.0.0.1", "1")
	do(t, admin, "REPLICAOF", "NO", "ONE")
	if after, err := l.Now(t.Context()); err != nil || after.History == before.History || after.History == "" {
		t.Errorf("Now() = %+v, %v, want another history than %q", after, err, before.History)
	}
}

// An append-only file that was there from the start lacks nothing while it is rewritten for the first time.
func TestAFirstRewriteOfACompleteFileIsNoReasonToWait(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l, admin := open(t, s.URI()), raw(t, s.URI())
	must(t, "Append()", appendTo(t, l, 1))
	for n := range 50 {
		do(t, admin, "SET", fmt.Sprint("other", n), "value")
	}
	do(t, admin, "CONFIG", "SET", "rdb-key-save-delay", "100000")
	do(t, admin, "BGREWRITEAOF")
	await(t, "the rewrite", func() bool {
		return strings.Contains(do(t, admin, "INFO", "persistence"), "aof_rewrite_in_progress:1")
	})
	l.links.renew()
	if err := appendTo(t, l, 2); err != nil {
		t.Errorf("Append() during the first rewrite = %v", err)
	}
	if text := do(t, admin, "INFO", "persistence"); !strings.Contains(text, "aof_rewrite_in_progress:1") {
		t.Error("the rewrite was over before: the test shows nothing")
	}
}

// Sentinels know a replica that was replaced, for one that is down, until they are told.
func TestAReplicaThatIsGoneForGoodCanBeForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("a sentinel asks its primary for new replicas each 10 s")
	}
	t.Parallel()
	primary, gone := pair(t)
	sentinel := redispeer.StartSentinel(t, "leases", primary)
	admin := raw(t, sentinel.URI())
	knows := func(n string) func() bool {
		return func() bool { return strings.Contains(do(t, admin, "INFO", "sentinel"), "slaves="+n) }
	}
	await(t, "that the sentinel knows the replica", knows("1"))
	gone.Kill()
	await(t, "that the replica is gone", func() bool {
		return strings.Contains(do(t, raw(t, primary.URI()), "INFO", "replication"), "connected_slaves:0")
	})
	follower(t, primary, primary.Addr())
	await(t, "that the sentinel knows both", knows("2"))
	l := open(t, "redis+sentinel://"+sentinel.Addr()+"/leases?replicas=1&replicaWait=20s")
	must(t, "Append()", appendTo(t, l, 1))
	if w := l.Warning(); !strings.Contains(w, "1 of 2 replicas") || !strings.Contains(w, "SENTINEL RESET") {
		t.Errorf("Warning() = %q, want the number of replicas, and how the one is forgotten", w)
	}
	do(t, admin, "SENTINEL", "RESET", "leases")
	await(t, "that the sentinel knows the one that is left", knows("1"))
	must(t, "Init()", l.Init(t.Context()))
	if w := l.Warning(); w != "" {
		t.Errorf("Warning() = %q once the sentinel has forgotten the replica, want none", w)
	}
}

// A cluster that is down for a moment doesn't say which node has the keys: a replica was named as well as any other node.
func TestAReplicaInAClusterThatIsDownIsNotRefused(t *testing.T) {
	t.Parallel()
	flags := []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--repl-diskless-sync-delay", "0"}
	first, second := redispeer.Start(t, redispeer.Options{Flags: flags}), redispeer.Start(t, redispeer.Options{Flags: flags})
	a, b := raw(t, first.URI()), raw(t, second.URI())
	slots := []any{"CLUSTER", "ADDSLOTS"}
	for slot := range 16384 {
		slots = append(slots, slot)
	}
	do(t, a, slots...)
	_, port, _ := net.SplitHostPort(first.Addr())
	do(t, b, "CLUSTER", "MEET", "127.0.0.1", port)
	await(t, "the replica", func() bool {
		_, err := b.Do(t.Context(), "CLUSTER", "REPLICATE", do(t, a, "CLUSTER", "MYID")).Result()
		return err == nil && strings.Contains(do(t, b, "CLUSTER", "INFO"), "cluster_state:ok")
	})
	await(t, "an append by the replica's word", func() bool { return appendTo(t, open(t, second.URI()), 1) == nil })
	first.Kill()
	await(t, "that the cluster is down", func() bool {
		return strings.Contains(do(t, b, "CLUSTER", "INFO"), "cluster_state:fail")
	})
	wantRefusal(t, "Append()", appendTo(t, open(t, second.URI()), 2), nil, "CLUSTERDOWN")
}

// A sentinel that doesn't answer must not hide what the others say.
func TestASilentSentinelHidesNoSecondPrimary(t *testing.T) {
	t.Parallel()
	first, second, silent := redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{})
	one, other := redispeer.StartSentinel(t, "leases", first), redispeer.StartSentinel(t, "leases", second)
	silent.Pause()
	l := open(t, "redis+sentinel://"+one.Addr()+","+other.Addr()+","+silent.Addr()+"/leases")
	wantRefusal(t, "Append()", appendTo(t, l, 1), nil, "two servers take writes")
}

// After a failover, SENTINEL FAILOVER above all, one sentinel knows of it a moment before the others, and the former primary goes on.
func TestSentinelsMayDisagreeForAMoment(t *testing.T) {
	t.Parallel()
	first, second := redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{})
	one, other := redispeer.StartSentinel(t, "leases", first), redispeer.StartSentinel(t, "leases", second)
	l := open(t, "redis+sentinel://"+other.Addr()+","+one.Addr()+"/leases")
	if err := appendTo(t, l, 1); !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrRefused) {
		t.Errorf("Append() = %v, want that nothing is stored, and no refusal", err)
	}
	host, port, _ := net.SplitHostPort(second.Addr())
	do(t, raw(t, one.URI()), "SENTINEL", "REMOVE", "leases")
	do(t, raw(t, one.URI()), "SENTINEL", "MONITOR", "leases", host, port, "1")
	must(t, "Append() once they agree", appendTo(t, l, 1))
}

// The certificate is that of the name which the URI has.
func TestTheServersOfANameAreAskedByTLS(t *testing.T) {
	t.Parallel()
	addr, config := startTLS(t)
	_, port, _ := net.SplitHostPort(addr)
	l := openWith(t, Options{URI: "rediss://cache.example:" + port, TLS: config})
	l.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1", "127.0.0.2"}, nil }
	if found := l.surveyAll(t.Context(), server{}); len(found.hosts) != 1 || !found.hosts[0].Writes {
		t.Errorf("surveyAll() = %+v, want the one server", found)
	}
}

// Clocks that have been set are known as soon as both of their servers answer, although a third one doesn't.
func TestASilentServerKeepsNoDistanceOfOthers(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	third := follower(t, primary, primary.Addr())
	l := open(t, primary.URI())
	must(t, "Append()", appendTo(t, l, 1))
	l.surveyed.Store(&survey{clocks: storekit.Distance{Least: 2990 * time.Millisecond, Most: 3 * time.Second, Fast: replica.Addr(), Slow: primary.Addr()}})
	third.Pause()
	defer third.Resume()
	must(t, "Init()", l.Init(t.Context()))
	if s, err := l.Now(t.Context()); err != nil || s.Skew != DefaultSkew {
		t.Errorf("Now() = %+v, %v, want a skew of %v: both clocks were set", s, err, DefaultSkew)
	}
}
