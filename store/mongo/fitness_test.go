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

// collectionEntry is what listCollections says of the ledgers' collection.
func collectionEntry(kind string, options bson.D) bson.D {
	return bson.D{{Key: "name", Value: DefaultCollection}, {Key: "type", Value: kind}, {Key: "options", Value: options}}
}

func TestUnfitCollectionsAreRefused(t *testing.T) {
	t.Parallel()
	// What the server says of the collection, if it may be looked at.
	is := func(kind string, options ...bson.E) map[string]bson.D {
		return map[string]bson.D{"listCollections": cursorOf(collectionEntry(kind, options))}
	}
	collation := func(locale string) bson.E {
		return bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: locale}}}
	}
	rules := bson.E{Key: "validator", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$type", Value: "int"}}}}}
	indexed := func(also ...bson.D) map[string]bson.D {
		replies := is("collection")
		replies["listIndexes"] = cursorOf(append(also, bson.D{{Key: "name", Value: "_id_"}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}})...)
		return replies
	}
	// What a router says of it, and what the config database has.
	denied := commandError(codeUnauthorized, "Unauthorized", "not authorized on WorkerProcess to execute command")
	stats := func(reply bson.D, found ...bson.D) map[string]bson.D {
		return map[string]bson.D{"collStats": reply, "find": cursorOf(found...)}
	}
	sharded := func(v bool) bson.D {
		return bson.D{{Key: "ok", Value: 1.0}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "sharded", Value: v}}
	}
	tracked := func(also ...bson.E) bson.D {
		return append(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}}, also...)
	}
	absent := commandError(codeNamespaceNotFound, "NamespaceNotFound", "no such collection")
	nothing := map[string]bson.D{"collStats": denied, "find": denied}
	for _, c := range []struct {
		name    string
		routed  bool // by mongos
		replies map[string]bson.D
		unsafe  bool
		refusal string // part of the message, or empty if the collection is fit
	}{
		{name: "a plain collection", replies: indexed()},
		{name: "no collection yet"},
		{name: "a view", replies: is("view"), refusal: "a view"},
		{name: "a time series", replies: is("timeseries"), refusal: "a timeseries"},
		{name: "a capped collection", replies: is("collection", bson.E{Key: "capped", Value: true}), refusal: "capped"},
		{name: "a clustered collection that expires", replies: is("collection", bson.E{Key: "expireAfterSeconds", Value: int64(60)}), refusal: "expireAfterSeconds"},
		{name: "a clustered collection", replies: is("collection", bson.E{Key: "clusteredIndex", Value: bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "unique", Value: true}}}), refusal: "clustered"},
		{name: "a validator", replies: is("collection", rules), refusal: "validator"},
		{name: "a validator that asks of inserts only", replies: is("collection", rules, bson.E{Key: "validationLevel", Value: "moderate"}), refusal: "validator"},
		{name: "a validator that only warns", replies: is("collection", rules, bson.E{Key: "validationAction", Value: "warn"})},
		{name: "a validator that is off", replies: is("collection", rules, bson.E{Key: "validationLevel", Value: "off"})},
		{name: "an empty validator", replies: is("collection", bson.E{Key: "validator", Value: bson.D{}})},
		{name: "a collation that folds case", replies: is("collection", collation("en")), refusal: "collation en"},
		{name: "the simple collation", replies: is("collection", collation("simple"))},
		{name: "a unique index", replies: indexed(bson.D{{Key: "name", Value: "once"}, {Key: "key", Value: bson.D{{Key: "claim", Value: int32(1)}}}, {Key: "unique", Value: true}}), refusal: `unique index "once"`},
		{name: "another index", replies: indexed(bson.D{{Key: "name", Value: "quick"}, {Key: "key", Value: bson.D{{Key: "claim", Value: int32(1)}}}})},
		{name: "a TTL index", replies: indexed(bson.D{{Key: "name", Value: "old"}, {Key: "expireAfterSeconds", Value: int32(3600)}}), refusal: `TTL index "old"`},
		{name: "no right to look at collection and indexes", replies: map[string]bson.D{"listCollections": denied, "listIndexes": denied}},
		{name: "not sharded", routed: true, replies: stats(sharded(false))},
		{name: "not there", routed: true, replies: stats(absent)},
		{name: "sharded", routed: true, replies: stats(sharded(true)), refusal: "is sharded"},
		{name: "sharded, though unverified ones are accepted", routed: true, replies: stats(sharded(true)), unsafe: true, refusal: "is sharded"},
		{name: "no right to the statistics, sharded by the config database", routed: true, replies: stats(denied, tracked()), refusal: "is sharded"},
		{name: "no right to the statistics, only tracked by the config database", routed: true, replies: stats(denied, tracked(bson.E{Key: "unsplittable", Value: true}))},
		{name: "no right to the statistics, unknown to the config database", routed: true, replies: stats(denied)},
		{name: "no rights at all", routed: true, replies: nothing, refusal: "grant the action collStats"},
		{name: "no rights at all, accepted", routed: true, replies: nothing, unsafe: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(c.replies)})
			if c.routed {
				f.greet(router())
			}
			l := f.open(Options{UnsafeUnverified: c.unsafe})
			err := l.Append(within(t, patience), storetest.Grant("job", 1))
			if c.refusal == "" {
				wantErr(t, "Append() to a collection that is fit", err, nil)
				return
			}
			documenttest.Says(t, "Append()", err, store.ErrRefused, c.refusal)
			if got := f.sent("insert"); len(got) > 0 {
				t.Errorf("inserts sent to a collection that is refused = %v, want none", got)
			}
			wantErr(t, "Init()", l.Init(within(t, patience)), store.ErrRefused)
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
		must(t, "Append()", appendOne(seq+1))
	}
	documenttest.Equal(t, "looks at the collection for 5 appends", len(f.sent("listCollections")), 1)
	f.mu.Lock()
	sharded = true
	f.mu.Unlock()
	mock.Add(59 * time.Minute)
	wantErr(t, "Append() 59 min later, not yet looked at again", appendOne(6), nil)
	mock.Add(time.Minute)
	wantErr(t, "Append() 1 h later, when it was sharded meanwhile", appendOne(7), store.ErrRefused)
	documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 6)
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
			replies := map[string]bson.D{"create": c.create}
			if c.listed {
				replies["listCollections"] = cursorOf(collectionEntry("collection", bson.D{}))
			}
			f := serve(t, &fakeServer{reply: answers(replies)})
			// The fake never lists what was created, so Init says that it isn't there.
			wantErr(t, "Init()", f.open(Options{}).Init(within(t, patience)), c.want)
			documenttest.Equal(t, "create commands", len(f.sent("create")), c.creates)
		})
	}
}
