package cosmos_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
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

// counter is a transport that counts requests by method and kind.
type counter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *counter) Do(req *http.Request) (*http.Response, error) {
	what := req.Method
	switch {
	case strings.Trim(req.URL.Path, "/") == "":
		what += " account"
	case req.Header.Get("Content-Type") == "application/query+json":
		what += " query"
	case strings.Contains(req.URL.Path, "/docs"):
		what += " item"
	default:
		what += " container"
	}
	c.mu.Lock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[what]++
	c.mu.Unlock()
	return http.DefaultClient.Do(req)
}

// taken are the requests since the last call.
func (c *counter) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(c.count)
	clear(c.count)
	return out
}

var _ policy.Transporter = (*counter)(nil)

func TestConformance(t *testing.T) {
	uri := cosmospeer.URI(t)
	client := past(t, uri)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := newDatabase(t, client)
		var made sync.Once // the container, if a document is planted before Init
		rounds := 100      // Each append is a request over HTTP to one thread. make soak runs 1,000.
		if cosmos.RaceEnabled {
			rounds = 50
		}
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
			Rounds:    rounds,
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
