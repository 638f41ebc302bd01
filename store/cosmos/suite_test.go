package cosmos

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// patience bounds operations that must succeed, on a machine that is busy.
const patience = time.Minute

// past is a client that reaches an account past store/cosmos.
func past(t testing.TB, uri string) *azcosmos.Client {
	t.Helper()
	a, err := parseURI(uri)
	if err != nil {
		t.Fatalf("the URI of the account: %s", Redact(uri))
	}
	if cosmospeer.Key() == "" {
		t.Skip("COSMOS_URI is set without COSMOS_KEY, which this test needs")
	}
	credential, err := azcosmos.NewKeyCredential(cosmospeer.Key())
	must(t, "NewKeyCredential()", err)
	o := &azcosmos.ClientOptions{}
	o.InsecureAllowCredentialWithHTTP = true
	client, err := azcosmos.NewClientWithKey(a.endpoint, credential, o)
	must(t, "NewClientWithKey()", err)
	t.Cleanup(client.Close)
	return client
}

// newDatabase is the name of an empty database of the test's own, which goes with
// the test.
func newDatabase(t testing.TB, client *azcosmos.Client) string {
	t.Helper()
	name := "slotlease-test-" + rand.Text()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if d, err := client.NewDatabase(name); err == nil {
			_, _ = d.Delete(ctx, nil)
		}
	})
	return name
}

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	o.Key = cosmospeer.Key()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// ready is an opened ledger that is initialised.
func ready(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t, patience)))
	return l
}

func TestServerThatLostItsDataHasNoLedger(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	l := ready(t, Options{URI: peer.URI()})
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	peer.RestartEmpty()
	_, _, err := l.Tail(within(t, patience), "job", 1)
	wantSentinel(t, "Tail() of a lost ledger", err, store.ErrMissing)
	_, err = l.Get(within(t, patience), "job", 1)
	wantSentinel(t, "Get() of a lost ledger", err, store.ErrMissing)
	wantSentinel(t, "Append() to a lost ledger", l.Append(within(t, patience), storetest.Grant("job", 1)), store.ErrMissing)
	wantErr(t, "Init() and Append()", errors.Join(l.Init(within(t, patience)), l.Append(within(t, patience), storetest.Grant("job", 1))), nil)
}

// The peer charges 1 for each request. It has no GetCurrentTimestamp, so its time is the
// Date header's, or the item's.
func TestEachOperationOnAPeerIsOneRequestAndBracketsTheTime(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	l := ready(t, Options{URI: peer.URI()})
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	tail := func(workerType string) func(ctx context.Context) (store.Stamp, error) {
		return func(ctx context.Context) (s store.Stamp, err error) {
			_, s, err = l.Tail(ctx, workerType, 3)
			return s, err
		}
	}
	add := func(ctx context.Context) (s store.Stamp, err error) {
		return s, l.Append(ctx, storetest.Grant("job", 2))
	}
	get := func(ctx context.Context) (s store.Stamp, err error) { _, err = l.Get(ctx, "job", 2); return s, err }
	// The first queries find out that the peer doesn't know the function.
	_, tailErr := tail("job")(within(t, patience))
	_, nowErr := l.Now(within(t, patience))
	must(t, "Tail() and Now()", errors.Join(tailErr, nowErr))
	for _, c := range []struct {
		name    string
		call    func(ctx context.Context) (store.Stamp, error)
		stamped bool
		want    error
	}{
		{"Tail of nothing", tail("nobody"), true, nil},
		{"Append", add, true, nil},
		{"Append that loses", add, false, store.ErrConflict},
		{"Get", get, false, nil},
		{"Tail", tail("job"), true, nil},
		{"Tail, again", tail("job"), true, nil},
		{"Now", l.Now, true, nil},
	} {
		ctx, receipt := store.WithReceipt(within(t, patience))
		sent := time.Now()
		s, err := c.call(ctx)
		received := time.Now()
		if !errors.Is(err, c.want) || receipt.Units() != 1 {
			t.Errorf("%s = %v, charged %v, want %v, charged 1", c.name, err, receipt.Units(), c.want)
		}
		if !c.stamped {
			continue
		}
		if s.IsZero() {
			s = receipt.Stamp()
		}
		if s.Granularity != time.Second || s.MaxAge != time.Second || s.Skew != 250*time.Millisecond {
			t.Errorf("%s: stamp %+v, want a granularity and a MaxAge of 1 s, and a skew of 250 ms", c.name, s)
		}
		// The peer's clock is that of this machine.
		if s.Time.After(received) || s.Time.Add(s.Granularity+s.MaxAge).Before(sent) {
			t.Errorf("%s: stamp %+v of a request at %v … %v, want it to bracket them", c.name, s, sent, received)
		}
	}
}

// skips are what the suite can't show on any account.
var skips = map[string]string{
	"planted documents/*workerType contradicts its key*/*": "it is the partition key",
	"hostile names from outside/*/plant *":                 "an id can't have some characters",
	"foreign constraints":                                  "a container with unique keys is refused as a whole, and triggers run only if a request names them",
	"two paths":                                            "the container is the same, whatever the address",
	"watch":                                                "the store gives no hints",
}

func TestConformance(t *testing.T) {
	t.Parallel()
	uri := cosmospeer.URI(t)
	client := past(t, uri)
	skips := maps.Clone(skips)
	skips["readers"], skips["attendance/a reader*"] = "the peer takes any key", "the peer takes any key"
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := newDatabase(t, client)
		var made sync.Once // the container, if a document is planted before Init
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, Options{URI: uri, Database: name})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				made.Do(func() { ready(t, Options{URI: uri, Database: name}) })
				plant(t, client, name, workerType, seq, fields)
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				plantPresence(t, client, name, workerType, id, fields)
			},
			Skips:     skips,
			FreeStamp: true,
			Rounds:    100, // Each append is a request over HTTP to one thread. make soak runs 1,000.
		}
	})
}

// plant writes a document past the ledger.
func plant(t testing.TB, client *azcosmos.Client, database, workerType string, seq int64, fields map[string]any) {
	t.Helper()
	if v, ok := fields["workerType"]; ok && v != any(workerType) {
		t.Skip("workerType is the partition key: no document can contradict it")
	}
	if strings.ContainsAny(workerType, `/\?#`) {
		t.Skip("an id can't have these characters")
	}
	doc := map[string]any{"id": store.Key(workerType, seq), "workerType": workerType, "seq": seq}
	for k, v := range fields {
		if at, ok := v.(time.Time); ok {
			v = store.Format(at)
		}
		doc[k] = v
	}
	text, err := json.Marshal(doc)
	must(t, "Marshal()", err)
	c, err := client.NewContainer(database, DefaultContainer)
	must(t, "NewContainer()", err)
	if _, err := c.CreateItem(within(t, patience), azcosmos.NewPartitionKeyString(workerType), text, nil); err != nil {
		t.Fatalf("plant %s: %v", store.Key(workerType, seq), err)
	}
}

// plantPresence writes a document into the roster past the store.
func plantPresence(t testing.TB, client *azcosmos.Client, database, workerType, id string, fields map[string]any) {
	t.Helper()
	text, err := json.Marshal(presenceItem(workerType, id, fields))
	must(t, "Marshal()", err)
	c, err := client.NewContainer(database, DefaultContainer+rosterSuffix)
	must(t, "NewContainer()", err)
	_, err = c.UpsertItem(within(t, patience), azcosmos.NewPartitionKeyString(workerType), text, nil)
	must(t, "plant a presence", err)
}

// presenceItem is an item of the roster with some fields.
func presenceItem(workerType, id string, fields map[string]any) map[string]any {
	item := map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}
	for name, v := range fields {
		if at, ok := v.(time.Time); ok {
			v = at.Format(time.RFC3339Nano)
		}
		if labels, ok := v.(map[string]any); ok && name == "labels" {
			list := []any{}
			for name, value := range labels {
				list = append(list, map[string]any{"name": name, "value": value})
			}
			v = list
		}
		item[name] = v
	}
	return item
}
