package nats

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/restarts"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/natspeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

const canary = "c4naryS3cret"

// users are the settings of a server on which worker has the rights of InitScript, on all buckets that tests make, and reader those
// of people who look.
const users = `authorization { users: [
	{ user: admin, password: ` + canary + ` },
	{ user: worker, password: ` + canary + `, permissions: { publish: ["$JS.API.INFO", "$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.>",
		"$JS.API.STREAM.PURGE.>", "$JS.API.CONSUMER.>", "$JS.FC.>", "$KV.>"], subscribe: ["_INBOX.>"] } },
	{ user: reader, password: ` + canary + `, permissions: { publish: ["$JS.API.INFO", "$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.>",
		"$JS.API.CONSUMER.>", "$JS.FC.>"], subscribe: ["_INBOX.>"] } },
] }
`

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting()
	m.Run()
}

var buckets atomic.Int64

// fresh is the URI of a bucket that nobody has used.
func fresh(server string) string { return fmt.Sprintf("%stest%d", server, buckets.Add(1)) }

// as is a URI with a user.
func as(user, uri string) string {
	return strings.Replace(uri, "nats://", "nats://"+user+":"+canary+"@", 1)
}

var within = suites.Deadline

func opened(t testing.TB, uri string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), Options{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// initialised is opened, with the bucket made.
func initialised(t testing.TB, uri string) *Ledger {
	t.Helper()
	l := opened(t, uri)
	for ctx := within(t); ; time.Sleep(100 * time.Millisecond) { // A cluster that has just begun has no leader yet.
		err := l.Init(ctx)
		if err == nil {
			return l
		}
		if ctx.Err() != nil || !strings.Contains(uri, ",") {
			t.Fatal(err)
		}
	}
}

// raw is JetStream without the store.
func raw(t testing.TB, uri string) jetstream.JetStream {
	t.Helper()
	conn, err := natsio.Connect(uri[:strings.LastIndexByte(uri, '/')])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestALedgerKeepsTheContractOfAStore(t *testing.T) {
	suite(t, natspeer.Shared(t), false)
}

func TestALedgerOfAUserKeepsTheContractOfAStore(t *testing.T) {
	suite(t, natspeer.Start(t, users).URI(), true)
}

func TestALedgerOfAClusterKeepsTheContractOfAStore(t *testing.T) {
	_, uri := natspeer.Cluster(t)
	suite(t, uri, false)
}

func suite(t *testing.T, server string, withUsers bool) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		uri := fresh(server)
		admin, worker := uri, uri
		if withUsers {
			admin, worker = as("admin", uri), as("worker", uri)
		}
		js, names := raw(t, admin), opened(t, uri).b
		plant := func(t testing.TB, name string, document []byte) {
			t.Helper()
			_, err := js.Publish(within(t), names.subject(name), document)
			if strings.Contains(fmt.Sprint(err), "invalid subject") || errors.Is(err, jetstream.ErrNoStreamResponse) {
				t.Skip("no key has such a name")
			} else if err != nil {
				t.Fatal(err)
			}
		}
		h := storetest.Harness{
			Open:      func(t testing.TB) store.Ledger { return opened(t, worker) },
			InitFirst: func(t testing.TB) { initialised(t, admin) },
			OpenElsewhere: func(t testing.TB) (store.Ledger, error) { // with the application's own login
				l, err := Open(t.Context(), Options{
					URI:     strings.ReplaceAll(uri, "127.0.0.1", "localhost"),
					Connect: []natsio.Option{natsio.UserInfoHandler(func() (user, password string) { return "worker", canary })},
				})
				if err == nil {
					t.Cleanup(func() { _ = l.Close(context.Background()) })
				}
				return l, err
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				plant(t, storekit.RecordName(workerType, seq), storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				plant(t, storekit.PresenceName(workerType, id), storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields))
			},
			MaxDocument: 1000 << 10, // The server's limit is 1 MiB, with the headers.
			Rounds:      200,
			FreeStamp:   true,
			Skips: map[string]string{
				"foreign constraints": "NATS knows no constraints and no triggers", "hostile names from outside/*/plant*": "no key has such a name",
			},
		}
		if withUsers {
			h.OpenReading = func(t testing.TB) store.Ledger { return opened(t, as("reader", uri)) }
		} else {
			for _, name := range []string{"readers", "attendance/a reader*"} {
				h.Skips[name] = "without users everybody may write"
			}
		}
		return h
	})
}

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := natspeer.Start(t, "")
		uri := fresh(peer.URI())
		if err := initialised(t, uri).Close(within(t)); err != nil { // Its connection would count.
			t.Fatal(err)
		}
		on := func(uri string) func(ctx context.Context) (store.Ledger, error) {
			return func(ctx context.Context) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) }
		}
		return storetest.PeerHarness{Peer: peer, Open: on(uri), Secret: canary, OpenSecret: on(as("worker", uri))}
	})
}

func TestOfSeveralProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	uri := fresh(natspeer.Shared(t))
	initialised(t, uri)
	storetest.ProcessRace{At: uri, Processes: 4, Goroutines: 3, Rounds: 100}.Run(t)
}

// SLOTLEASE_LINEAR_OPS sets the number of operations, of which a fortieth is checked here, as on the other servers in
// internal/linear.
func TestTheLedgerIsLinearizableWhileItsServerIsKilled(t *testing.T) {
	t.Parallel()
	server := natspeer.Start(t, "")
	linearizable(t, server.URI(), func(int) restarts.Server { return server })
}

// The servers of a cluster are killed one after another, so that leaders change.
func TestTheLedgerIsLinearizableWhileServersOfItsClusterAreKilled(t *testing.T) {
	t.Parallel()
	servers, uri := natspeer.Cluster(t)
	linearizable(t, uri, func(i int) restarts.Server { return servers[i%len(servers)] })
}

func linearizable(t *testing.T, at string, killed func(i int) restarts.Server) {
	t.Helper()
	all, err := workload.Operations(36_000)
	if err != nil {
		t.Fatal(err)
	}
	first, least := 0, 3
	if race.Enabled || testing.Short() {
		first, least, all = 2, 1, all/10
	}
	uri := fresh(at)
	ledgers := []store.Ledger{initialised(t, uri)}
	for range 5 {
		ledgers = append(ledgers, opened(t, uri))
	}
	var sum linear.Result
	kills, after := 0, 0
	// An election may take longer than a round, on a busy machine than several: then another one is to show answers after a kill.
	for i := first; sum.Searched < all/40 || i < first+least || after == 0 && i < first+20*least; i++ {
		plan := restarts.Plan(i)
		plan.InOrder = true
		h, n := restarts.Round(t.Context(), ledgers, i, plan, killed(i))
		result, err := h.Check(time.Minute)
		if err != nil {
			t.Fatalf("round %d: Check() = %v: %v", i, err, result.Violations)
		}
		sum.Add(result)
		if after += n; restarts.Disturbed(i) {
			kills++
		}
	}
	t.Logf("%d operations checked, %d of unknown outcome, %d conflicts, %d kills, %d answers after them", sum.Searched, sum.Unknown, sum.Conflicts, kills, after)
	if sum.Conflicts == 0 || after == 0 {
		t.Errorf("%d conflicts, %d answers after %d kills, want some of each", sum.Conflicts, after, kills)
	}
}

func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	uri := fresh(natspeer.Shared(t))
	initialised(t, uri)
	before := runtime.NumGoroutine()
	for range 3 {
		l, err := Open(t.Context(), Options{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Append(within(t), storetest.Grant("job", 1))
		watched := make(chan error)
		go func() { watched <- l.Watch(t.Context(), func(string) {}) }()
		time.Sleep(50 * time.Millisecond)
		if err := l.Close(within(t)); err != nil {
			t.Fatal(err)
		}
		if err := <-watched; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Watch() of a ledger that is closed = %v, want ErrClosed", err)
		}
	}
	after := 0
	for range 100 {
		if after = runtime.NumGoroutine(); after <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines are left of %d before:\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
}

func TestWorkersLeadOneAtATime(t *testing.T) {
	t.Parallel()
	uri := fresh(natspeer.Shared(t))
	initialised(t, uri)
	documenttest.Lead(t, 2*time.Second, func() store.Ledger { return opened(t, uri) })
}

// BenchmarkFigures measures what docs/stores says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := fresh(natspeer.Shared(b))
	initialised(b, uri)
	documenttest.BenchmarkFigures(b, func() store.Ledger { return opened(b, uri) })
}

func BenchmarkLong(b *testing.B) {
	storetest.BenchmarkLong(b, initialised(b, fresh(natspeer.Shared(b))))
}
