package mongo

import (
	"maps"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// routed starts a router that says that the collection is sharded by a field, and passes
// what reads and writes it on to the peer, as to the one shard that has it.
func routed(t testing.TB, client *mongo.Client, database, field string) *fakeServer {
	t.Helper()
	return serve(t, &fakeServer{greeting: router(), now: time.Now, reply: func(name string, command bson.Raw) bson.D {
		of, _ := command.Index(0).Value().StringValueOK()
		switch {
		case name == "aggregate":
			clock := shardClock("sh1", "vm:27112", 0)
			clock[3].Value = bson.NewDateTimeFromTime(time.Now())
			return cursorOf(clock)
		case name == "collStats":
			return bson.D{{Key: "ns", Value: database + "." + of}, {Key: "sharded", Value: true}, {Key: "ok", Value: 1.0}}
		case name == "find" && of == "collections":
			return cursorOf(bson.D{{Key: "_id", Value: database + "." + DefaultCollection}, {Key: "key", Value: bson.D{{Key: field, Value: "hashed"}}}})
		case slices.Contains([]string{"find", "getMore", "killCursors", "insert", "update", "delete", "listCollections", "listIndexes", "create"}, name):
			return passedOn(t, client, database, command)
		}
		return nil
	}})
}

// FerretDB is the shard of all worker types here: what this shows is that a router is
// asked as it should be, and that filters find what they should.
func TestConformanceOfACollectionShardedByWorkerType(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	uri := mongopeer.URI(t)
	client := dial(t, uri)
	skips := maps.Clone(skips)
	skips["planted documents/*workerType contradicts its key*/*"] = "such a document belongs on another shard, and isn't read, as the package says"
	skips["readers"], skips["attendance/a reader*"] = "TestConformance shows them", "TestConformance shows it"
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		name := database(t, client)
		f := routed(t, client, name, document.WorkerType)
		return storetest.Harness{
			Rounds: 10,
			Open:   func(t testing.TB) store.Ledger { t.Helper(); return f.open(Options{Database: name}) },
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if v, given := fields[document.WorkerType]; given && v != workerType {
					t.Skip("a document with another worker type belongs on another shard, and isn't read, as the package says")
				}
				planter(client, name)(t, workerType, seq, fields)
			},
			PlantPresence: presencePlanter(client, name),
			Skips:         skips,
		}
	})
}
