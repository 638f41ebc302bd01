package mongo

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The services of this file are wire-level fakes: replies written after their documentation
// and source, not recorded from them.

// listed is what listCollections says of a plain collection, with more in its info.
func listed(info ...bson.E) bson.D {
	return cursorOf(append(collectionEntry("collection", bson.D{}), bson.E{Key: "info", Value: append(bson.D{{Key: "readOnly", Value: false}}, info...)}))
}

// ferret2 is FerretDB 2.7: buildInfo as internal/handler/msg_buildinfo.go has it.
func ferret2(t *testing.T) *fakeServer {
	t.Helper()
	return serve(t, &fakeServer{reply: answers(map[string]bson.D{
		"buildInfo":       recorded(t, `{"version":"7.0.77","gitVersion":"9770660","modules":[],"sysInfo":"deprecated","versionArray":[7,0,77,0],"bits":64,"debug":false,"maxBsonObjectSize":16777216,"buildEnvironment":{},"ferretdb":{"version":"v2.7.0","package":"docker"},"ok":1}`),
		"listCollections": listed(),
	})})
}

// documentDB is DocumentDB's gateway: hello as pg_documentdb_gw's ismaster.rs has it, with
// a number for a time, and $collStats with nothing but ns (coll_stats.c).
func documentDB(t *testing.T, info ...bson.E) *fakeServer {
	t.Helper()
	f := serve(t, &fakeServer{greeting: bson.D{
		{Key: "msg", Value: "isdbgrid"},
		{Key: "localTime", Value: int64(1_700_000_000_123)},
		{Key: "internal", Value: bson.D{{Key: "kind", Value: "azure"}}},
		{Key: "readOnly", Value: false},
	}})
	f.reply = answers(map[string]bson.D{
		"listCollections": listed(info...),
		"collStats":       {{Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "count", Value: int32(1)}, {Key: "ok", Value: 1.0}},
		"aggregate":       cursorOf(bson.D{{Key: "ns", Value: "WorkerProcess.WorkerLeases"}}),
	})
	return f
}

// cosmosDB is Cosmos DB for MongoDB (RU): a replica set by the name of globaldb, whose
// extension GetCollection shows the shard key, and which takes no retryable writes.
func cosmosDB(t *testing.T, key bson.D) *fakeServer {
	t.Helper()
	collection := bson.D{{Key: "database", Value: "WorkerProcess"}, {Key: "collection", Value: "WorkerLeases"}, {Key: "provisionedThroughput", Value: int32(400)}, {Key: "ok", Value: 1.0}}
	if key != nil {
		collection = append(collection, bson.E{Key: "shardKeyDefinition", Value: key})
	}
	f := serve(t, &fakeServer{reply: func(name string, command bson.Raw) bson.D {
		if _, err := command.LookupErr("txnNumber"); err == nil {
			return commandError(2, "BadValue", "Retryable writes are not supported.") // Amazon DocumentDB says so by 301.
		}
		return map[string]bson.D{"customAction": collection, "listCollections": listed()}[name]
	}})
	greeting := member(f.addr)
	greeting[0].Value = "globaldb"
	f.greet(append(greeting, bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}))
	return f
}

func TestServicesWithAClockOfTheirFrontEndsNeedASkew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start func(t *testing.T) *fakeServer
		says  string
	}{
		"FerretDB 2": {ferret2, "FerretDB answers with the clock of the proxy"},
		"DocumentDB": {func(t *testing.T) *fakeServer { t.Helper(); return documentDB(t) }, "DocumentDB answers with the clock of the gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := c.start(t)
			documenttest.Says(t, "Append() without ServerSkew", f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1)), store.ErrRefused, c.says, "ServerSkew")
			documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 0)
			l := f.open(Options{ServerSkew: 20 * time.Millisecond})
			must(t, "Append() with ServerSkew", l.Append(within(t, patience), storetest.Grant("job", 1)))
			want := store.Stamp{Time: store.FromMillis(1_700_000_000_123), Granularity: time.Millisecond, Skew: 20 * time.Millisecond, Server: f.addr}
			if got, err := l.Now(within(t, patience)); err != nil || got != want {
				t.Errorf("Now() = %+v, %v, want %+v", got, err, want)
			}
			documenttest.Equal(t, "$collStats sent", len(f.sent("aggregate")), 0)
		})
	}
	_, err := documentDB(t).open(Options{}).Now(within(t, patience))
	documenttest.Says(t, "Now() of DocumentDB without ServerSkew", err, store.ErrRefused, "ServerSkew")
}

func TestServicesAreAskedForTheirShardKey(t *testing.T) {
	t.Parallel()
	by := func(field string) bson.D { return bson.D{{Key: field, Value: "hashed"}} }
	for _, c := range []struct {
		name   string
		start  func(t *testing.T) *fakeServer
		says   string // part of the refusal, or empty
		target bool   // reads name the worker type
	}{
		{name: "Cosmos DB, not sharded", start: func(t *testing.T) *fakeServer { t.Helper(); return cosmosDB(t, nil) }},
		{name: "Cosmos DB by _id", start: func(t *testing.T) *fakeServer { t.Helper(); return cosmosDB(t, by("_id")) }},
		{name: "Cosmos DB by worker type", start: func(t *testing.T) *fakeServer { t.Helper(); return cosmosDB(t, by("workerType")) }, target: true},
		{name: "Cosmos DB by group", start: func(t *testing.T) *fakeServer { t.Helper(); return cosmosDB(t, by("group")) }, says: "is sharded by {group}"},
		{name: "DocumentDB, not sharded", start: func(t *testing.T) *fakeServer { t.Helper(); return documentDB(t) }},
		{name: "DocumentDB, not sharded, by null", start: func(t *testing.T) *fakeServer {
			t.Helper()
			return documentDB(t, bson.E{Key: "shardKey", Value: nil})
		}},
		{name: "DocumentDB by worker type", start: func(t *testing.T) *fakeServer {
			t.Helper()
			return documentDB(t, bson.E{Key: "shardKey", Value: by("workerType")})
		}, target: true},
		{name: "DocumentDB by claim", start: func(t *testing.T) *fakeServer {
			t.Helper()
			return documentDB(t, bson.E{Key: "shardKey", Value: by("claim")})
		}, says: "is sharded by {claim}"},
		{name: "DocumentDB by something unreadable", start: func(t *testing.T) *fakeServer {
			t.Helper()
			return documentDB(t, bson.E{Key: "shardKey", Value: "claim"})
		}, says: "is sharded by {}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := c.start(t)
			l := f.open(Options{ServerSkew: time.Millisecond, Clock: clock.NewMock()})
			err := l.Append(within(t, patience), storetest.Grant("job", 1))
			if c.says != "" {
				documenttest.Says(t, "Append()", err, store.ErrRefused, c.says)
				documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 0)
				return
			}
			must(t, "Append()", err)
			_, get := l.Get(within(t, patience), "job", 1)
			wantErr(t, "Get()", get, store.ErrNotFound)
			for _, filter := range f.asked() {
				if _, err := filter.LookupErr("workerType"); (err == nil) != c.target {
					t.Errorf("asked for %s, want the worker type in it: %v", filter, c.target)
				}
			}
			for _, find := range f.sent("find") {
				if _, err := find.LookupErr("hint"); err == nil {
					t.Errorf("sent %s, want no hint: not all services take one", find)
				}
			}
		})
	}
}

func TestAShardKeyThatCantBeFoundOutIsRefused(t *testing.T) {
	t.Parallel()
	denied := commandError(codeUnauthorized, "Unauthorized", "not authorized")
	for name, start := range map[string]func(t *testing.T) *fakeServer{
		"Cosmos DB":  func(t *testing.T) *fakeServer { t.Helper(); return cosmosDB(t, nil) },
		"DocumentDB": func(t *testing.T) *fakeServer { t.Helper(); return documentDB(t) },
	} {
		f := start(t)
		asBefore := f.reply
		f.reply = func(name string, command bson.Raw) bson.D {
			if name == "listCollections" || name == "customAction" {
				return denied
			}
			return asBefore(name, command)
		}
		err := f.open(Options{ServerSkew: time.Millisecond}).Append(within(t, patience), storetest.Grant("job", 1))
		documenttest.Says(t, name+": Append()", err, store.ErrRefused, "can't find out how", "UnsafeUnverified")
		err = f.open(Options{ServerSkew: time.Millisecond, UnsafeUnverified: true}).Append(within(t, patience), storetest.Grant("job", 1))
		wantErr(t, name+": Append() that accepts the danger", err, nil)
	}
}
