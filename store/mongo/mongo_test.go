package mongo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// within is the context of one operation.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// database is the name of an empty database of the test's own, which goes with
// the test.
func database(t testing.TB, client *mongo.Client) string {
	t.Helper()
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	name := "slotlease-test-" + hex.EncodeToString(id)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = client.Database(name).Drop(ctx)
	})
	return name
}

// withPath adds a database and a collection to a server's URI.
func withPath(t testing.TB, uri, database, collection string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Skipf("the URI of this server has a form that the test can't change: %s", Redact(uri))
	}
	u.Path = "/" + database
	q := u.Query()
	q.Set("collection", collection)
	u.RawQuery = q.Encode()
	return u.String()
}

// dial is a client of the test's own.
func dial(t testing.TB, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// open opens a ledger that is closed with the test.
func open(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func TestConformance(t *testing.T) {
	uri := mongopeer.URI(t)
	client := dial(t, uri)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := database(t, client)
		return storetest.Harness{
			Rounds: 150, // FerretDB appends a thousand times a second. make soak runs 1,000 rounds.
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return open(t, Options{URI: uri, Database: name})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				doc := bson.M{fieldID: store.Key(workerType, seq), document.WorkerType: workerType, document.Seq: seq}
				for k, v := range fields {
					doc[k] = v
				}
				_, err := client.Database(name).Collection(DefaultCollection).InsertOne(within(t, time.Minute), doc)
				if err != nil && strings.Contains(err.Error(), "must not start with '$'") {
					t.Skipf("the test peer can't store this document: %v", err)
				}
				if err != nil {
					t.Fatalf("plant %s: %v", store.Key(workerType, seq), err)
				}
			},
		}
	})
}
