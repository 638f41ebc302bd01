package mongo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var within, must, wantErr, wantSentinel = documenttest.Within, documenttest.Must, documenttest.Is, documenttest.Sentinel

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

// dial is a client of the test's own.
func dial(t testing.TB, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetDialer(network))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// open opens a ledger that is closed with the test.
func open(t testing.TB, o Options) *Ledger {
	t.Helper()
	o.dialer = network
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func TestConformance(t *testing.T) {
	t.Parallel()
	uri := mongopeer.URI(t)
	// FerretDB appends a thousand times a second. make soak runs 1,000 rounds.
	rounds := 100
	switch {
	case suites.Quick():
		rounds = 10
	case race.Enabled:
		rounds = 40
	}
	storetest.Run(t, conforms(dial(t, uri), uri, rounds))
}

// skips are what the suite can't show on the peer, or nowhere.
var skips = map[string]string{
	"planted documents/*wrong type*/*$gt*": "the peer stores no names that begin with $",
	"foreign constraints":                  "a collection with another unique index is refused as a whole, and there are no triggers",
	"watch":                                "a standalone server has no change streams",
	"two paths":                            "the collection is the same, whatever the address",
}

// turns has handles by a URI and by a client in turns.
var turns atomic.Int64

// conforms gives the suite an empty database for each case, on a server.
func conforms(client *mongo.Client, uri string, rounds int) func(*testing.T) storetest.Harness {
	return func(t *testing.T) storetest.Harness {
		t.Helper()
		name := database(t, client)
		return storetest.Harness{
			Rounds: rounds,
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				if turns.Add(1)%2 == 0 {
					return open(t, Options{Client: client, Database: name})
				}
				return open(t, Options{URI: uri, Database: name})
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				return openReading(t, client, name)
			},
			Plant:         planter(client, name),
			PlantPresence: presencePlanter(client, name),
			Skips:         skips,
		}
	}
}

// planter writes documents past the store's own checks.
func planter(client *mongo.Client, database string) func(t testing.TB, workerType string, seq int64, fields map[string]any) {
	return func(t testing.TB, workerType string, seq int64, fields map[string]any) {
		t.Helper()
		doc := bson.M{fieldID: store.Key(workerType, seq), document.WorkerType: workerType, document.Seq: seq}
		for k, v := range fields {
			doc[k] = v
		}
		_, err := client.Database(database).Collection(DefaultCollection).InsertOne(within(t, time.Minute), doc)
		if err != nil && strings.Contains(err.Error(), "must not start with '$'") {
			t.Skipf("the test peer can't store this document: %v", err)
		}
		if err != nil {
			t.Fatalf("plant %s: %v", store.Key(workerType, seq), err)
		}
	}
}

// presencePlanter writes documents of the roster past the store's own checks.
func presencePlanter(client *mongo.Client, database string) func(t testing.TB, workerType, id string, fields map[string]any) {
	return func(t testing.TB, workerType, id string, fields map[string]any) {
		t.Helper()
		key := workerType + ":" + id
		doc := bson.M{fieldID: key, "workerType": workerType, "id": id}
		for k, v := range fields {
			if m, ok := v.(map[string]any); ok && k == "labels" {
				list := bson.A{}
				for name, value := range m {
					list = append(list, bson.M{"name": name, "value": value})
				}
				v = list
			}
			doc[k] = v
		}
		c := client.Database(database).Collection(DefaultCollection + rosterSuffix)
		_, err := c.ReplaceOne(within(t, time.Minute), bson.M{fieldID: key}, doc, options.Replace().SetUpsert(true))
		must(t, "plant "+key, err)
	}
}

func TestCallersClientStaysOpen(t *testing.T) {
	t.Parallel()
	client := dial(t, mongopeer.URI(t))
	name := database(t, client)
	l := open(t, Options{Client: client, Database: name})
	must(t, "Init()", l.Init(within(t, patience)))
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	wantErr(t, "Close()", l.Close(within(t, patience)), nil)
	wantErr(t, "Append() after Close()", l.Append(within(t, patience), storetest.Grant("job", 2)), store.ErrClosed)
	other := open(t, Options{Client: client, Database: name})
	if got, err := other.Get(within(t, patience), "job", 1); err != nil || got != storetest.Grant("job", 1) {
		t.Errorf("Get() by another ledger on the same client = %+v, %v, want the record", got, err)
	}
}
