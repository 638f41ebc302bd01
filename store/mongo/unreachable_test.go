package mongo

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// onPeer opens a ledger on an empty collection of the peer, and the collection.
func onPeer(t *testing.T) (*Ledger, *mongo.Collection) {
	t.Helper()
	uri := mongopeer.URI(t)
	client := dial(t, uri)
	name := database(t, client)
	return open(t, Options{URI: uri, Database: name}), client.Database(name).Collection(DefaultCollection)
}

// insertIDs inserts documents that have nothing but an _id.
func insertIDs(t *testing.T, c *mongo.Collection, ids ...any) {
	t.Helper()
	for _, id := range ids {
		if _, err := c.InsertOne(within(t, patience), bson.D{{Key: "_id", Value: id}}); err != nil {
			t.Fatalf("insert %v: %v", id, err)
		}
	}
}

func TestIDsThatAreNoKeysHideNoRecord(t *testing.T) {
	t.Parallel()
	l, c := onPeer(t)
	ctx := within(t, 2*time.Minute)
	must(t, "Init()", l.Init(ctx))
	documenttest.OddIDs(ctx, t, l, func() {
		// Above all keys, between keys, below all keys, and of other types.
		insertIDs(t, c, "job:zzz", "job:00000000000000000005\n", "job:00000000000000000004x", "job:0000000000000000000", "job:", "job;", "job", int64(7), bson.NewObjectID())
	}, func() int {
		n, err := c.CountDocuments(ctx, bson.D{})
		must(t, "CountDocuments()", err)
		return int(n)
	})
}

func TestWorkerTypesAmongManyOddIDs(t *testing.T) {
	suites.Prove(t, "it plants thousands of documents")
	t.Parallel()
	l, c := onPeer(t)
	insertIDs(t, c, "", ":")
	documenttest.TypesAmongOddIDs(within(t, 2*time.Minute), t, l, func(_, id string) { insertIDs(t, c, id) })
}

func TestTailPassesOverBoundedlyManyUnreachableIDs(t *testing.T) {
	t.Parallel()
	batch := make([]bson.D, document.MaxUnreachable+2)
	for i := range batch {
		batch[i] = bson.D{{Key: "_id", Value: fmt.Sprintf("job:0000000000000000000%dx", i)}}
	}
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"find": cursorOf(batch...)})})
	_, _, err := f.open(Options{}).Tail(within(t, patience), "job", 1)
	documenttest.Says(t, "Tail()", err, nil, "remove them")
}
