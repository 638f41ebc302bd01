package mongo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// collectionEntry is what listCollections says of the ledgers' collection.
func collectionEntry(kind string, options bson.D) bson.D {
	return bson.D{{Key: "name", Value: DefaultCollection}, {Key: "type", Value: kind}, {Key: "options", Value: options}}
}

func TestUnfitCollectionsAreRefused(t *testing.T) {
	t.Parallel()
	plain := collectionEntry("collection", bson.D{})
	idIndex := bson.D{{Key: "name", Value: "_id_"}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}}
	denied := commandError(codeUnauthorized, "Unauthorized", "not authorized on WorkerProcess to execute command")
	sharded := func(v bool) bson.D {
		return bson.D{{Key: "ok", Value: 1.0}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "sharded", Value: v}}
	}
	for _, c := range []struct {
		name     string
		greeting bson.D
		replies  map[string]bson.D
		unsafe   bool
		refusal  string // part of the message, or empty if the collection is fit
	}{
		{name: "a plain collection", replies: map[string]bson.D{"listCollections": cursorOf(plain), "listIndexes": cursorOf(idIndex)}},
		{name: "no collection yet"},
		{
			name:    "a view",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("view", bson.D{}))},
			refusal: "a view",
		},
		{
			name:    "a time series",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("timeseries", bson.D{}))},
			refusal: "a timeseries",
		},
		{
			name:    "a capped collection",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("collection", bson.D{{Key: "capped", Value: true}}))},
			refusal: "capped",
		},
		{
			name:    "a clustered collection that expires",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("collection", bson.D{{Key: "expireAfterSeconds", Value: int64(60)}}))},
			refusal: "expireAfterSeconds",
		},
		{
			name:    "a collation that folds case",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("collection", bson.D{{Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}}}}))},
			refusal: "collation en",
		},
		{
			name:    "the simple collation",
			replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("collection", bson.D{{Key: "collation", Value: bson.D{{Key: "locale", Value: "simple"}}}}))},
		},
		{
			name: "a TTL index",
			replies: map[string]bson.D{
				"listCollections": cursorOf(plain),
				"listIndexes":     cursorOf(idIndex, bson.D{{Key: "name", Value: "old"}, {Key: "expireAfterSeconds", Value: int32(3600)}}),
			},
			refusal: `TTL index "old"`,
		},
		{
			name:    "no right to look at collection and indexes",
			replies: map[string]bson.D{"listCollections": denied, "listIndexes": denied},
		},
		{name: "with a router, not sharded", greeting: router(), replies: map[string]bson.D{"collStats": sharded(false)}},
		{name: "with a router, not there", greeting: router(), replies: map[string]bson.D{"collStats": commandError(codeNamespaceNotFound, "NamespaceNotFound", "no such collection")}},
		{
			name:     "with a router, sharded",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": sharded(true)},
			refusal:  "is sharded",
		},
		{
			name:     "sharded, though unverified ones are accepted",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": sharded(true)},
			unsafe:   true,
			refusal:  "is sharded",
		},
		{
			name:     "no right to the statistics, sharded by the config database",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": denied, "find": cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}})},
			refusal:  "is sharded",
		},
		{
			name:     "no right to the statistics, only tracked by the config database",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": denied, "find": cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}, {Key: "unsplittable", Value: true}})},
		},
		{
			name:     "no right to the statistics, unknown to the config database",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": denied},
		},
		{
			name:     "no rights at all with a router",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": denied, "find": denied},
			refusal:  "grant the action collStats",
		},
		{
			name:     "no rights at all with a router, accepted",
			greeting: router(),
			replies:  map[string]bson.D{"collStats": denied, "find": denied},
			unsafe:   true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{greeting: c.greeting, reply: func(name string, _ bson.Raw) bson.D { return c.replies[name] }})
			l := f.open(Options{UnsafeUnverified: c.unsafe})
			err := l.Append(within(t, patience), storetest.Grant("job", 1))
			if c.refusal == "" {
				if err != nil {
					t.Errorf("Append() = %v, want nil: the collection is fit", err)
				}
				return
			}
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("Append() = %v, want ErrRefused with %q", err, c.refusal)
			}
			if got := f.sent("insert"); len(got) > 0 {
				t.Errorf("inserts sent to a collection that is refused = %v, want none", got)
			}
			if err := l.Init(within(t, patience)); !errors.Is(err, store.ErrRefused) {
				t.Errorf("Init() = %v, want ErrRefused", err)
			}
		})
	}
}

func TestFitnessCostsNoOperationPerAppend(t *testing.T) {
	t.Parallel()
	var sharded bool
	f := serve(t, &fakeServer{greeting: router()})
	f.reply = func(name string, _ bson.Raw) bson.D {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch name {
		case "listCollections":
			return cursorOf(collectionEntry("collection", bson.D{}))
		case "collStats":
			return bson.D{{Key: "ok", Value: 1.0}, {Key: "sharded", Value: sharded}}
		}
		return nil
	}
	mock := clock.NewMock()
	l := f.open(Options{Clock: mock})
	appendOne := func(seq int64) error { return l.Append(within(t, patience), storetest.Grant("job", seq)) }
	for seq := range int64(5) {
		if err := appendOne(seq + 1); err != nil {
			t.Fatalf("Append() = %v, want nil", err)
		}
	}
	if got := len(f.sent("listCollections")); got != 1 {
		t.Errorf("looks at the collection for 5 appends = %d, want 1", got)
	}
	f.mu.Lock()
	sharded = true
	f.mu.Unlock()
	mock.Add(59 * time.Minute)
	if err := appendOne(6); err != nil {
		t.Errorf("Append() 59 min later = %v, want nil: not yet looked at again", err)
	}
	mock.Add(time.Minute)
	if err := appendOne(7); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Append() 1 h later = %v, want ErrRefused: it was sharded meanwhile", err)
	}
	if got := len(f.sent("insert")); got != 6 {
		t.Errorf("inserts sent = %d, want 6", got)
	}
}

func TestInitCreatesOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed  bool
		create  bson.D
		creates int
		want    error
	}{
		"there":                           {listed: true},
		"missing":                         {creates: 1, want: store.ErrMissing},
		"created by another meanwhile":    {create: commandError(codeNamespaceExists, "NamespaceExists", "exists"), creates: 1, want: store.ErrMissing},
		"missing, and no right to create": {create: commandError(codeUnauthorized, "Unauthorized", "not authorized"), creates: 1, want: store.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
				switch {
				case name == "listCollections" && c.listed:
					return cursorOf(collectionEntry("collection", bson.D{}))
				case name == "create":
					return c.create
				}
				return nil
			}})
			// The fake never lists what was created, so Init says that it isn't there.
			if err := f.open(Options{}).Init(within(t, patience)); !errors.Is(err, c.want) {
				t.Errorf("Init() = %v, want %v", err, c.want)
			}
			if got := len(f.sent("create")); got != c.creates {
				t.Errorf("create commands = %d, want %d", got, c.creates)
			}
		})
	}
}
