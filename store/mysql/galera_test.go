package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// provider is the library of Debian's package galera-4.
const provider = "/usr/lib/galera/libgalera_smm.so"

// freePort is a port that was free.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// statusQuery asks for a status of a server.
func statusQuery(name string) string {
	return `SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '` + name + `'`
}

// status is one.
func status(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	must(t, name, past(t, dsn).QueryRowContext(within(t), statusQuery(name)).Scan(&value))
	return value
}

// startCluster starts nodes of a cluster, whose data are the same because they are empty.
func startCluster(t *testing.T, nodes int) []*mysqlpeer.Server {
	t.Helper()
	if _, err := os.Stat(provider); err != nil {
		if slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), "mariadb") {
			t.Fatalf("Galera is missing: %v", err)
		}
		t.Skipf("Debian's galera-4 is missing: %v", err)
	}
	var members []string
	for range nodes {
		members = append(members, freePort(t))
	}
	var all []*mysqlpeer.Server
	for i, at := range members {
		peers := strings.Join(members[:i], ",") // none: a new cluster
		files := map[string]string{}
		if i > 0 {
			// What the others have by now is what this one has, so that it needs no copy of theirs.
			files["grastate.dat"] = fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %s\nsafe_to_bootstrap: 0\n",
				status(t, all[0].DSN(), "wsrep_cluster_state_uuid"), status(t, all[0].DSN(), "wsrep_last_committed"))
		}
		s := mysqlpeer.Start(t, mysqlpeer.Options{Files: files, Flags: []string{
			"--wsrep-on=ON", "--wsrep-provider=" + provider, "--wsrep-cluster-address=gcomm://" + peers, "--wsrep-cluster-name=" + members[0], "--wsrep-sst-method=skip",
			"--wsrep-node-address=127.0.0.1", "--wsrep-node-name=" + at, fmt.Sprintf("--server-id=%d", i+1), "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--wsrep-provider-options=gmcast.listen_addr=tcp://" + at + "; ist.recv_addr=" + freePort(t) + "; gcache.size=16M; pc.wait_prim_timeout=PT30S; base_host=127.0.0.1",
		}})
		awaits(t, s.DSN(), statusQuery("wsrep_local_state_comment"), "Synced")
		awaits(t, s.DSN(), statusQuery("wsrep_cluster_size"), fmt.Sprint(i+1))
		all = append(all, s)
	}
	mysqlpeer.Exec(t, all[0].DSN(), "CREATE DATABASE jobs")
	return all
}

// Writes go to all nodes of a cluster at once, and each node is read.
func TestACluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 3)
	var ledgers []*Ledger
	for _, n := range nodes {
		ledgers = append(ledgers, initialised(t, Options{URI: "mysql://root@" + n.Addr() + "/jobs"}))
	}
	first := ledgers[0]
	if d, w := first.Durability(), first.Warning(); !strings.HasPrefix(d.Failover, "Other nodes have each record") || w != "" {
		t.Errorf("Durability() = %+v, Warning() = %q, want the other nodes, and none", d, w)
	}
	stamp, err := first.Now(within(t))
	if err != nil || stamp.Skew != sqldb.DefaultSkew || stamp.Clock == "" {
		t.Errorf("Now() = %+v, %v, want a clock, and the skew of several servers", stamp, err)
	}
	found, err := first.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckDurability, store.LevelWarn, "may lose acknowledged records when nodes crash or are cut off")
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelSkip, "servers that the URI doesn't name weren't asked")
	all := opened(t, Options{URI: "mysql://root@" + nodes[0].Addr() + "," + nodes[1].Addr() + "," + nodes[2].Addr() + "/jobs"})
	must(t, "Check() of a cluster all of whose nodes take writes", all.core.Fitness.Check(within(t)))
	found, err = all.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelOK, "as was measured; workers allow for 100ms")

	t.Run("of appends to one key on several nodes exactly one wins", func(t *testing.T) {
		var mu sync.Mutex
		wins := make([][]int64, len(ledgers))
		var wg sync.WaitGroup
		ctx := within(t)
		const rounds = 100
		for i, l := range ledgers {
			wg.Go(func() {
				won, err := storetest.Contend(ctx, l, "race", rounds, 4, fmt.Sprint("node-", i))
				mu.Lock()
				defer mu.Unlock()
				if wins[i] = won; err != nil {
					t.Errorf("Contend() on node %d = %v, want nil", i, err)
				}
			})
		}
		wg.Wait()
		storetest.CheckWins(t, rounds, wins...)
	})
	t.Run("of appends above one record on several nodes exactly one wins", func(t *testing.T) {
		prev := storetest.Grant("above", 1)
		must(t, "Append()", first.Append(within(t), prev))
		for seq := int64(2); seq <= 60; seq++ {
			errs := make([]error, len(ledgers))
			var wg sync.WaitGroup
			for i, l := range ledgers {
				wg.Go(func() {
					r := storetest.Grant("above", seq)
					r.Claim = fmt.Sprint("node-", i)
					errs[i] = l.AppendAfter(within(t), r, prev)
				})
			}
			wg.Wait()
			stored, err := first.Get(within(t), "above", seq)
			must(t, "Get()", err)
			for i, err := range errs {
				if won := stored.Claim == fmt.Sprint("node-", i); won != (err == nil) || err != nil && !errors.Is(err, store.ErrConflict) {
					t.Errorf("AppendAfter(%d) on node %d = %v, and %s is stored, want one winner and conflicts", seq, i, err, stored.Claim)
				}
			}
			prev = stored
		}
	})
	t.Run("each node shows what was acknowledged by another", func(t *testing.T) {
		for seq := range int64(100) {
			writer, reader := ledgers[seq%3], ledgers[(seq+1)%3]
			must(t, "Append()", writer.Append(within(t), storetest.Grant("seen", seq+1)))
			if got, _, err := reader.Tail(within(t), "seen", 1); err != nil || len(got) != 1 || got[0].Seq != seq+1 {
				t.Fatalf("Tail() on another node = %+v, %v, want the record %d that was acknowledged", got, err, seq+1)
			}
			if seq > 0 {
				next := storetest.Grant("followed", seq+1)
				must(t, "AppendAfter() a record that another node has acknowledged", writer.AppendAfter(within(t), next, storetest.Grant("followed", seq)))
			} else {
				must(t, "Append()", writer.Append(within(t), storetest.Grant("followed", 1)))
			}
			if _, err := ledgers[(seq+2)%3].Get(within(t), "seen", seq+1); err != nil {
				t.Fatalf("Get() on another node = %v, want the record %d that was acknowledged", err, seq+1)
			}
		}
	})
	t.Run("a node that lags is waited for", func(t *testing.T) {
		held, err := past(t, nodes[1].DSN()+"jobs").Conn(within(t))
		must(t, "Conn()", err)
		defer func() { _ = held.Close() }()
		_, err = held.ExecContext(within(t), "FLUSH TABLES WITH READ LOCK") // It applies nothing of others.
		must(t, "FLUSH TABLES", err)
		must(t, "Append()", ledgers[0].Append(within(t), storetest.Grant("lag", 1)))
		if got, _, err := ledgers[1].Tail(documenttest.Within(t, brief), "lag", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Tail() on a node that lags = %+v, %v, want that it waits", got, err)
		}
		_, err = held.ExecContext(within(t), "UNLOCK TABLES")
		must(t, "UNLOCK TABLES", err)
		if got, _, err := ledgers[1].Tail(within(t), "lag", 1); err != nil || len(got) != 1 {
			t.Errorf("Tail() when the node has caught up = %+v, %v, want the record", got, err)
		}
	})
	t.Run("a transaction that loses to another node stored nothing", func(t *testing.T) {
		// A transaction in progress on one node meets the append of another.
		rival, err := past(t, nodes[1].DSN()+"jobs").BeginTx(within(t), nil)
		must(t, "BeginTx()", err)
		_, err = rival.ExecContext(within(t), `INSERT INTO worker_leases VALUES ('lost', 1, '{}')`)
		must(t, "the rival's insert", err)
		must(t, "Append()", ledgers[0].Append(within(t), storetest.Grant("lost", 1)))
		if _, err := ledgers[1].Get(within(t), "lost", 1); err != nil {
			t.Errorf("Get() = %v, want the record", err)
		}
		err = rival.Commit()
		if m := first.meaning(err); err == nil || !m.NotStored || !m.Sound {
			t.Errorf("the rival's Commit() = %v (%+v), want an error that means: nothing stored", err, m)
		}
	})
	t.Run("a node that is cut off is refused, and reads nothing", func(t *testing.T) {
		nodes[1].Pause()
		nodes[2].Pause()
		awaits(t, nodes[0].DSN()+"?wsrep_sync_wait=0&wsrep_dirty_reads=1", statusQuery("wsrep_cluster_status"), "non-Primary")
		for name, call := range documenttest.Operations(first, storetest.Grant("cut", 1)) {
			err := call(documenttest.Within(t, 3*time.Second))
			if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s on a node that is cut off = %v, want an error", name, err)
			}
			if name == "Append" && !errors.Is(err, store.ErrNotStored) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Append() on a node that is cut off = %v, want that nothing was stored", err)
			}
		}
		nodes[1].Resume()
		nodes[2].Resume()
		suites.Eventually(t, "Append() when the cluster is whole", func() bool {
			err = first.Append(documenttest.Within(t, brief), storetest.Grant("cut", 2))
			return err == nil || errors.Is(err, store.ErrConflict)
		})
		must(t, "Append() when the cluster is whole", err)
	})
}
