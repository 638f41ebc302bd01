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
	keyed := func(field string, how any) bson.D {
		return tracked(bson.E{Key: "key", Value: bson.D{{Key: field, Value: how}}}, bson.E{Key: "unique", Value: false})
	}
	resharding := func(field string) bson.E {
		return bson.E{Key: "reshardingFields", Value: bson.D{{Key: "state", Value: "cloning"}, {Key: "donorFields", Value: bson.D{{Key: "reshardingKey", Value: bson.D{{Key: field, Value: int32(1)}}}}}}}
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
		{name: "sharded by _id", routed: true, replies: stats(sharded(true), keyed("_id", int32(1)))},
		{name: "sharded by a hash of _id", routed: true, replies: stats(sharded(true), keyed("_id", "hashed"))},
		{name: "sharded by worker type", routed: true, replies: stats(sharded(true), keyed("workerType", int32(1)))},
		{name: "sharded by a hash of the worker type", routed: true, replies: stats(denied, keyed("workerType", "hashed"))},
		{name: "sharded by the claim", routed: true, replies: stats(sharded(true), keyed("claim", "hashed")), refusal: "is sharded by {claim}, and _id is unique only in each shard: reshard it by workerType or by _id alone"},
		{name: "sharded by worker type and claim", routed: true, replies: stats(denied, tracked(bson.E{Key: "key", Value: bson.D{{Key: "workerType", Value: int32(1)}, {Key: "claim", Value: int32(1)}}})), refusal: "is sharded by {workerType, claim}"},
		{name: "sharded by worker type and claim, though unverified ones are accepted", unsafe: true, routed: true, replies: stats(sharded(true), keyed("claim", int32(1))), refusal: "is sharded by {claim}"},
		{name: "sharded, and no right to see the key", routed: true, replies: map[string]bson.D{"collStats": sharded(true), "find": denied}, refusal: "grant find on config.collections"},
		{name: "being resharded by the claim", routed: true, replies: stats(sharded(true), append(keyed("_id", int32(1)), resharding("claim"))), refusal: "is being resharded by {claim}"},
		{name: "being resharded by worker type", routed: true, replies: stats(sharded(true), append(keyed("_id", int32(1)), resharding("workerType")))},
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
	for _, c := range []struct {
		name     string
		greeting bson.D
		asks     string // the command that looks, and that finds the collection unfit later
		unfit    bson.D
		again    time.Duration
	}{
		{name: "a view", asks: "listCollections", unfit: cursorOf(collectionEntry("view", bson.D{})), again: time.Hour},
		{name: "sharded", greeting: router(), asks: "collStats", unfit: bson.D{{Key: "ok", Value: 1.0}, {Key: "sharded", Value: true}}, again: 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			replies := map[string]bson.D{
				"listCollections": cursorOf(collectionEntry("collection", bson.D{})),
				"collStats":       {{Key: "ok", Value: 1.0}, {Key: "sharded", Value: false}},
			}
			f := serve(t, &fakeServer{greeting: c.greeting})
			f.reply = func(name string, _ bson.Raw) bson.D {
				f.mu.Lock()
				defer f.mu.Unlock()
				return replies[name]
			}
			mock := clock.NewMock()
			l := f.open(Options{Clock: mock})
			appendOne := func(seq int64) error { return l.Append(within(t, patience), storetest.Grant("job", seq)) }
			for seq := range int64(5) {
				must(t, "Append()", appendOne(seq+1))
			}
			documenttest.Equal(t, "looks at the collection for 5 appends", len(f.sent(c.asks)), 1)
			f.mu.Lock()
			replies[c.asks] = c.unfit
			f.mu.Unlock()
			mock.Add(c.again - time.Nanosecond)
			wantErr(t, "Append() shortly before the next look", appendOne(6), nil)
			mock.Add(time.Nanosecond)
			wantErr(t, "Append() with the next look, which finds it unfit", appendOne(7), store.ErrRefused)
			documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 6)
		})
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
		"there, but for the roster":       {listed: true, creates: 1},
		"missing":                         {creates: 1, want: store.ErrMissing},
		"created by another meanwhile":    {create: commandError(codeNamespaceExists, "NamespaceExists", "exists"), creates: 1, want: store.ErrMissing},
		"missing, and no right to create": {create: commandError(codeUnauthorized, "Unauthorized", "not authorized"), creates: 1, want: store.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replies := map[string]bson.D{"create": c.create, "listCollections": cursorOf()}
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
