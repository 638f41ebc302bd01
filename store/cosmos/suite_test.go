package cosmos

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
