package redis

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var must = documenttest.Must

// count makes prefixes unlike each other.
var count atomic.Int64

// prefix is one that no other test uses.
func prefix() string { return fmt.Sprintf("test-%d", count.Add(1)) }

// shared is the URI of a ledger of its own on the server of all tests, which keeps its data in memory.
func shared(t testing.TB) string {
	t.Helper()
	return redispeer.Shared(t) + "?unsafeNoPersistence=true&prefix=" + prefix()
}

// open returns a ledger that is closed with the test.
func open(t testing.TB, uri string) *Ledger {
	t.Helper()
	return openWith(t, Options{URI: uri})
}

func openWith(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want nil", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	return l
}

// either returns a handle by the URI, or by a client of the application's, in turns.
func either(t testing.TB, uri string) *Ledger {
	t.Helper()
	if count.Add(1)%2 == 0 {
		return open(t, uri)
	}
	a, err := parseURI(uri)
	must(t, "parseURI()", err)
	return openWith(t, Options{Client: lent(t, &goredis.Options{Addr: a.hosts[0]}), Prefix: a.prefix, UnsafeNoPersistence: true})
}

// raw returns a client that knows nothing of ledgers.
func raw(t testing.TB, uri string) *goredis.Client {
	t.Helper()
	base, _, _ := strings.Cut(uri, "?")
	o, err := goredis.ParseURL(base)
	must(t, "ParseURL()", err)
	o.ReadTimeout = time.Minute // A machine may be busy.
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheLedgerKeepsTheContractOfAStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		uri := shared(t)
		rounds := 400
		if testing.Short() || race.Enabled {
			rounds = 100
		}
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return either(t, uri)
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				return openWith(t, Options{URI: uri, ReadOnly: true})
			},
			OpenElsewhere: func(t testing.TB) (store.Ledger, error) {
				t.Helper()
				return Open(t.Context(), Options{URI: strings.Replace(uri, "127.0.0.1", "localhost", 1)})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				l := open(t, uri)
				plant(t, l, raw(t, uri), workerType, fmt.Sprint(seq), string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				l, c := open(t, uri), raw(t, uri)
				text := string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields))
				must(t, "ZADD", c.ZAdd(t.Context(), l.names.rosters(), goredis.Z{Member: workerType}).Err())
				must(t, "HSET", c.HSet(t.Context(), l.names.roster(workerType), id, text).Err())
			},
			Skips: map[string]string{
				"foreign constraints": "Redis has no indexes and no triggers",
			},
			FreeStamp: true,
			Rounds:    rounds,
		}
	})
}

// plant adds a document to a ledger as another program may.
func plant(t testing.TB, l *Ledger, c *goredis.Client, workerType, score, text string) {
	t.Helper()
	must(t, "ZADD", c.ZAdd(t.Context(), l.names.types(), goredis.Z{Member: workerType}).Err())
	must(t, "ZADD", c.Do(t.Context(), "ZADD", l.names.ledger(workerType), score, text).Err())
}
