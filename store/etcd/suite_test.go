package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// prefixes counts those that tests have used.
var prefixes atomic.Int64

// fresh is a URI with a prefix that nobody has used.
func fresh(server string) string { return fmt.Sprintf("%stest%d", server, prefixes.Add(1)) }

// opened opens a ledger, which is closed when the test ends.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// raw is a client without the store.
func raw(t testing.TB, server string) *clientv3.Client {
	t.Helper()
	return as(t, server, "")
}

// as is raw for a user with the password canary.
func as(t testing.TB, server, user string) *clientv3.Client {
	t.Helper()
	o := clientv3.Config{Endpoints: []string{"http" + strings.TrimSuffix(strings.TrimPrefix(server, "etcd"), "/")}, Logger: zap.NewNop()}
	if user != "" {
		o.Username, o.Password = user, canary
	}
	client, err := clientv3.New(o)
	must(t, "New()", err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// put puts a key without the store.
func put(t testing.TB, client *clientv3.Client, key, value string, o ...clientv3.OpOption) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value, o...); err != nil {
		t.Fatal(err)
	}
}

var must, within = documenttest.Must, suites.Deadline

func TestALedgerKeepsTheContractOfAStore(t *testing.T) {
	server := etcdpeer.Shared(t)
	suite(t, server, raw(t, server), Options{}, nil)
}

func TestALedgerOfAUserKeepsTheContractOfAStore(t *testing.T) {
	s := withUsers(t)
	suite(t, s.URI(), as(t, s.URI(), "root"), Options{User: "worker", Password: canary}, &Options{User: "reader", Password: canary})
}

// suite runs the suite on a server, with options of workers and readers. client may do everything.
func suite(t *testing.T, server string, client *clientv3.Client, worker Options, reader *Options) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		uri := fresh(server)
		folder := strings.TrimPrefix(uri, server) + "/"
		handle := func(t testing.TB, uri string, o Options) store.Ledger {
			o.URI = uri
			return opened(t, o)
		}
		h := storetest.Harness{
			Open: func(t testing.TB) store.Ledger { return handle(t, uri, worker) },
			OpenElsewhere: func(t testing.TB) (store.Ledger, error) {
				return handle(t, strings.Replace(uri, "127.0.0.1", "localhost", 1), worker), nil
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				put(t, client, folder+storekit.RecordName(workerType, seq), string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				put(t, client, folder+storekit.PresenceName(workerType, id), string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields)))
			},
			MaxDocument: 1 << 20, // etcd's limit is 1.5 MiB.
			Rounds:      300,
			Skips:       map[string]string{"foreign constraints": "etcd knows no constraints and no triggers"},
		}
		if reader != nil {
			h.OpenReading = func(t testing.TB) store.Ledger { return handle(t, uri, *reader) }
		} else {
			for _, name := range []string{"readers", "attendance/a reader*"} {
				h.Skips[name] = "without authentication everybody may write"
			}
		}
		return h
	})
}
