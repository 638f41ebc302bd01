package cosmos_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// patience bounds operations that must succeed, on a machine that is busy.
const patience = time.Minute

// lasting is the context of some operations.
func lasting(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// past is a client that reaches an account past store/cosmos.
func past(t testing.TB, uri string) *azcosmos.Client {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatalf("the URI of the account: %s", cosmos.Redact(uri))
	}
	endpoint := "https://" + u.Host + ":443/"
	switch {
	case u.Query().Get("insecureHTTP") == "true":
		endpoint = "http://" + u.Host + "/"
	case u.Port() != "":
		endpoint = "https://" + u.Host + "/"
	case !strings.Contains(u.Host, "."):
		endpoint = "https://" + u.Host + ".documents.azure.com:443/"
	}
	if cosmospeer.Key() == "" {
		t.Skip("COSMOS_URI is set without COSMOS_KEY, which this test needs")
	}
	credential, err := azcosmos.NewKeyCredential(cosmospeer.Key())
	if err != nil {
		t.Fatal(err)
	}
	o := &azcosmos.ClientOptions{}
	o.InsecureAllowCredentialWithHTTP = true
	client, err := azcosmos.NewClientWithKey(endpoint, credential, o)
	if err != nil {
		t.Fatal(err)
	}
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
func opened(t testing.TB, o cosmos.Options) *cosmos.Ledger {
	t.Helper()
	o.Key = cosmospeer.Key()
	l, err := cosmos.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", cosmos.Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// ready is an opened ledger that is initialised.
func ready(t testing.TB, o cosmos.Options) *cosmos.Ledger {
	t.Helper()
	l := opened(t, o)
	if err := l.Init(lasting(t, patience)); err != nil {
		t.Fatalf("Init() = %v, want nil", err)
	}
	return l
}

// onAPeer calls a test with a separate peer, and handles on it.
func onAPeer(t *testing.T, test func(t *testing.T, p documenttest.Peer, open func() store.Ledger)) {
	t.Helper()
	t.Parallel()
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	test(t, peer, func() store.Ledger { return opened(t, cosmos.Options{URI: peer.URI()}) })
}

func TestHandleOutlivesARestartOfTheServer(t *testing.T) { onAPeer(t, documenttest.OutlivesARestart) }

func TestAppendToASilentServerIsUnknown(t *testing.T) { onAPeer(t, documenttest.SilentAppendIsUnknown) }

func TestConformance(t *testing.T) {
	uri := cosmospeer.URI(t)
	client := past(t, uri)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := newDatabase(t, client)
		var made sync.Once // the container, if a document is planted before Init
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, cosmos.Options{URI: uri, Database: name})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				made.Do(func() { ready(t, cosmos.Options{URI: uri, Database: name}) })
				plant(t, client, name, workerType, seq, fields)
			},
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
	doc := map[string]any{"id": store.Key(workerType, seq), "workerType": workerType, "seq": seq}
	for k, v := range fields {
		if at, ok := v.(time.Time); ok {
			v = store.Format(at)
		}
		doc[k] = v
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer(database, cosmos.DefaultContainer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateItem(lasting(t, patience), azcosmos.NewPartitionKeyString(workerType), text, nil); err != nil {
		t.Fatalf("plant %s: %v", store.Key(workerType, seq), err)
	}
}
