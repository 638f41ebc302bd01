package mongo

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// cluster answers as a router of MongoDB 5.0.7 does for a collection that is sharded by a
// field, and finds the given documents.
func cluster(t *testing.T, field string, docs ...bson.D) *fakeServer {
	t.Helper()
	f := serve(t, &fakeServer{greeting: router()})
	f.reply = func(name string, command bson.Raw) bson.D {
		of, _ := command.Index(0).Value().StringValueOK()
		switch {
		case name == "listCollections":
			return cursorOf(collectionEntry("collection", bson.D{}))
		case name == "collStats":
			return recorded(t, `{"ns":"WorkerProcess.WorkerLeases","sharded":true,"primary":null,"nchunks":4,"ok":1,"shards":["sh1","sh2"]}`)
		case name == "find" && of == "collections":
			return cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}, {Key: "key", Value: bson.D{{Key: field, Value: "hashed"}}}, {Key: "unique", Value: false}})
		case name == "aggregate" && of == clockCollection:
			return cursorOf(shardClock("sh2", "vm:27113", 0))
		case name == "aggregate":
			return cursorOf(shardClock("sh1", "vm:27112", time.Millisecond), shardClock("sh2", "vm:27113", 0))
		case name == "find":
			return cursorOf(docs...)
		}
		return nil
	}
	return f
}

// shardClock is what $collStats has of one shard.
func shardClock(shard, host string, ahead time.Duration) bson.D {
	return bson.D{{Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "shard", Value: shard}, {Key: "host", Value: host}, {Key: "localTime", Value: bson.DateTime(1_700_000_000_000 + ahead.Milliseconds())}}
}

// asked are the filters of the finds and deletes that ask for keys of a worker type.
func (f *fakeServer) asked() (filters []bson.Raw) {
	for _, c := range f.sent("find") {
		if filter := c.Lookup("filter").Document(); c.Lookup("find").StringValue() == DefaultCollection {
			filters = append(filters, filter)
		}
	}
	for _, c := range f.sent("delete") {
		filters = append(filters, c.Lookup("deletes").Array().Index(0).Document().Lookup("q").Document())
	}
	return filters
}

func TestOneShardIsAskedWhereTheWorkerTypeIsTheShardKey(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]bool{"workerType": true, "_id": false} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			f := cluster(t, field, bson.D{{Key: "_id", Value: store.Key("job", 3)}})
			l := f.open(Options{})
			ctx := within(t, patience)
			_, get := l.Get(ctx, "job", 3)
			_, _, tail := l.Tail(ctx, "job", 2)
			n, trim := l.Trim(ctx, "job", 3)
			must(t, "the operations", errors.Join(l.Append(ctx, storetest.Grant("job", 4)), get, tail, trim))
			documenttest.Equal(t, "Trim()", n, 1)
			documenttest.Equal(t, "finds and deletes", len(f.asked()), 5)
			for _, filter := range f.asked() {
				got, _ := filter.Lookup("workerType").StringValueOK()
				if want && got != "job" || !want && got != "" {
					t.Errorf("asked for %s, want the worker type in it: %v", filter, want)
				}
			}
			doc := f.sent("insert")[0].Lookup("documents").Array().Index(0).Document()
			documenttest.Equal(t, "the worker type of the inserted document", doc.Lookup("workerType").StringValue(), "job")
		})
	}
}

func TestAShardedCollectionHasTheClockOfThePrimaryShard(t *testing.T) {
	t.Parallel()
	f := cluster(t, "workerType")
	l := f.open(Options{Clock: clock.NewMock()})
	want := store.Stamp{Time: store.FromMillis(1_700_000_000_000), Granularity: time.Millisecond, Skew: defaultSkew, Server: "vm:27113"}
	for range 3 {
		if got, err := l.Now(within(t, patience)); err != nil || got != want {
			t.Errorf("Now() = %+v, %v, want %+v", got, err, want)
		}
	}
	documenttest.Equal(t, "Warning()", l.Warning(), "")
	// Two to compare the shards, and one for each stamp.
	documenttest.Equal(t, "$collStats for 3 stamps", len(f.sent("aggregate")), 5)
	documenttest.Equal(t, "looks at the shards for 3 stamps", len(f.sent("collStats")), 1)
}

func TestShardsThatContradictTheAssumedSkewWidenIt(t *testing.T) {
	t.Parallel()
	f := cluster(t, "workerType")
	asBefore := f.reply
	var ahead atomic.Int64
	f.reply = func(name string, command bson.Raw) bson.D {
		if of, _ := command.Index(0).Value().StringValueOK(); name == "aggregate" && of == DefaultCollection {
			return cursorOf(shardClock("sh1", "vm:27112", time.Duration(ahead.Load())), shardClock("sh2", "vm:27113", 0))
		}
		return asBefore(name, command)
	}
	mock := clock.NewMock()
	l := f.open(Options{Clock: mock})
	skew := func() time.Duration {
		s, err := l.Now(within(t, patience))
		must(t, "Now()", err)
		return s.Skew
	}
	ahead.Store(int64(100 * time.Millisecond))
	documenttest.Equal(t, "the skew with a shard that is as far ahead as is assumed", skew(), defaultSkew)
	ahead.Store(int64(3 * time.Second))
	mock.Add(lookAtShardsAgain)
	if got := skew(); got < 3*time.Second+drift || got > 4*time.Second {
		t.Errorf("the skew with a shard 3s ahead = %v, want 3s and the drift in 4 minutes", got)
	}
	documenttest.Equal(t, "Warning()", l.Warning(), "the clock of vm:27112 is ahead of that of vm:27113 by 2.999s to 3.481s, and 100ms are assumed (serverSkew)")
	ahead.Store(0)
	mock.Add(lookAtShardsAgain)
	documenttest.Equal(t, "the skew once that is mended", skew(), defaultSkew)
	documenttest.Equal(t, "Warning() once that is mended", l.Warning(), "")
}

// Between two looks, a collection that had one shard shows that it has several.
func TestACollectionThatIsShardedMeanwhileIsLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	var field atomic.Value
	field.Store("")
	f := cluster(t, "workerType")
	asBefore := f.reply
	f.reply = func(name string, command bson.Raw) bson.D {
		of, _ := command.Index(0).Value().StringValueOK()
		switch by := field.Load(); {
		case by == "" && name == "collStats":
			return recorded(t, `{"ns":"WorkerProcess.WorkerLeases","sharded":false,"primary":"sh1","ok":1}`)
		case by == "" && name == "aggregate" && of == DefaultCollection:
			return cursorOf(shardClock("sh1", "vm:27112", 0))
		case by == "claim" && name == "find" && of == "collections":
			return cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}, {Key: "key", Value: bson.D{{Key: "claim", Value: int32(1)}}}})
		}
		return asBefore(name, command)
	}
	for by, want := range map[string]struct {
		server string
		err    error
	}{"workerType": {server: "vm:27113"}, "claim": {err: store.ErrRefused}} {
		field.Store("")
		l := f.open(Options{Clock: clock.NewMock()})
		s, err := l.Now(within(t, patience))
		if err != nil || s.Server != "vm:27112" {
			t.Fatalf("Now() of a collection on one shard = %+v, %v, want that shard's clock", s, err)
		}
		field.Store(by)
		s, err = l.Now(within(t, patience))
		if !errors.Is(err, want.err) || s.Server != want.server {
			t.Errorf("Now() once it is sharded by %s = %+v, %v, want %+v", by, s, err, want)
		}
		if err := l.Append(within(t, patience), storetest.Grant("job", 1)); !errors.Is(err, want.err) {
			t.Errorf("Append() once it is sharded by %s = %v, want %v", by, err, want.err)
		}
	}
}

// With mongos, an operation that would go on with what was known might win under a shard
// key that isn't known yet.
func TestOperationsWaitForALookAtTheShards(t *testing.T) {
	t.Parallel()
	f := cluster(t, "workerType")
	asBefore := f.reply
	var blocked atomic.Bool
	looking, answer := make(chan struct{}, 9), make(chan struct{})
	f.reply = func(name string, command bson.Raw) bson.D {
		if name == "collStats" && blocked.Load() {
			looking <- struct{}{}
			<-answer
		}
		return asBefore(name, command)
	}
	mock := clock.NewMock()
	l := f.open(Options{Clock: mock})
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	mock.Add(lookAtShardsAgain)
	blocked.Store(true)
	read := make(chan error, 1)
	go func() { read <- documenttest.ErrorOf(l.Now(within(t, patience))) }()
	<-looking
	wantErr(t, "Append() during a look", l.Append(within(t, 50*time.Millisecond), storetest.Grant("job", 2)), context.DeadlineExceeded)
	documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 1)
	close(answer)
	must(t, "Now()", <-read)
	wantErr(t, "Append() after the look", l.Append(within(t, patience), storetest.Grant("job", 2)), nil)
}

func TestALookAtTheShardsThatHangsLeavesTimeForTheOperation(t *testing.T) {
	t.Parallel()
	f := cluster(t, "workerType")
	asBefore := f.reply
	var hangs atomic.Bool
	looking, end := make(chan struct{}, 9), make(chan struct{})
	t.Cleanup(func() { close(end) })
	f.reply = func(name string, command bson.Raw) bson.D {
		if name == "collStats" && hangs.Load() {
			looking <- struct{}{}
			<-end
		}
		return asBefore(name, command)
	}
	mock := clock.NewMock()
	mock.Set(time.Now())
	l := f.open(Options{Clock: mock})
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	mock.Add(lookAtShardsAgain)
	hangs.Store(true)
	done := make(chan error, 1)
	ctx := within(t, lookAtShardsAgain+patience) // So patience is left by the ledger's clock, too.
	go func() { done <- l.Append(ctx, storetest.Grant("job", 2)) }()
	<-looking
	deadline, _ := ctx.Deadline()
	mock.Add(deadline.Sub(mock.Now()) / 2) // Half of its time, and no more, since a failed look counts for some seconds.
	must(t, "Append()", <-done)
	// Others don't wait in turn.
	must(t, "Append() just after that", l.Append(within(t, patience), storetest.Grant("job", 3)))
	documenttest.Equal(t, "looks that were begun", len(f.sent("collStats")), 2)
	documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 3)
	hangs.Store(false)
	mock.Add(failedLook)
	must(t, "Append() some seconds later", l.Append(within(t, patience), storetest.Grant("job", 4)))
	documenttest.Equal(t, "looks once some seconds are over", len(f.sent("collStats")), 3)
}

func TestADocumentOfAnotherTypeThatKeepsAKeyIsNamed(t *testing.T) {
	t.Parallel()
	taken := writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_ dup key")
	other := bson.D{{Key: "_id", Value: store.Key("job", 1)}, {Key: "workerType", Value: "odd"}}
	ours := bson.D{{Key: "_id", Value: store.Key("job", 1)}, {Key: "workerType", Value: "job"}}
	for _, c := range []struct {
		name, field string
		docs        []bson.D
		unconfirmed bool
		want        error
	}{
		{name: "another type's, not confirmed", field: "workerType", docs: []bson.D{other}, unconfirmed: true, want: store.ErrConflict},
		{name: "another type's", field: "workerType", docs: []bson.D{other}, want: store.ErrRefused},
		{name: "one without a type", field: "workerType", docs: []bson.D{other[:1]}, want: store.ErrRefused},
		{name: "ours", field: "workerType", docs: []bson.D{ours}, want: store.ErrConflict},
		{name: "ours, and another type's on another shard", field: "workerType", docs: []bson.D{ours, other}, want: store.ErrConflict},
		{name: "trimmed since", field: "workerType", want: store.ErrConflict},
		{name: "another type's, which reads show", field: "_id", docs: []bson.D{other}, want: store.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := cluster(t, c.field, c.docs...)
			asBefore := f.reply
			f.reply = func(name string, command bson.Raw) bson.D {
				switch {
				case name == "insert" && c.unconfirmed:
					return append(slices.Clone(taken), unconfirmed(64, "waiting for replication timed out")[2])
				case name == "insert":
					return taken
				}
				if of, ok := command.Lookup("filter", "workerType").StringValueOK(); ok && name == "find" {
					return cursorOf(slices.DeleteFunc(slices.Clone(c.docs), func(d bson.D) bool { return len(d) < 2 || d[1].Value != of })...)
				}
				return asBefore(name, command)
			}
			l := f.open(Options{})
			err := l.Append(within(t, patience), storetest.Grant("job", 1))
			wantSentinel(t, "Append() to a key that is taken", err, c.want)
			if got, want := errors.Is(err, store.ErrNotStored), errors.Is(c.want, store.ErrRefused); got != want {
				t.Errorf("Append() = %v: surely not stored: %v, want %v", err, got, want)
			}
		})
	}
}

// A shard without a primary keeps a router waiting.
func TestALostRaceNeedsNoOtherShard(t *testing.T) {
	t.Parallel()
	f := cluster(t, "workerType", bson.D{{Key: "_id", Value: store.Key("job", 1)}, {Key: "workerType", Value: "job"}})
	asBefore := f.reply
	f.reply = func(name string, command bson.Raw) bson.D {
		if name == "insert" {
			return writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_ dup key")
		}
		return asBefore(name, command)
	}
	wantSentinel(t, "Append() to a key that is taken", f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1)), store.ErrConflict)
	for _, filter := range f.asked() {
		if of, _ := filter.Lookup("workerType").StringValueOK(); of != "job" {
			t.Errorf("asked for %s, want the worker type in it, so that one shard is asked", filter)
		}
	}
}

// By a router that is far away, or of which something else hangs, a look may never come to its end.
func TestALookThatIsCutShortHasSeenTheShardKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := cluster(t, "workerType")
		asBefore := f.reply
		var later atomic.Bool
		f.reply = func(name string, command bson.Raw) bson.D {
			of, _ := command.Index(0).Value().StringValueOK()
			switch {
			case later.Load() && name == "find" && of == "collections":
				return cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}, {Key: "key", Value: bson.D{{Key: "claim", Value: int32(1)}}}})
			case later.Load() && name == "listCollections":
				time.Sleep(time.Hour)
			}
			return asBefore(name, command)
		}
		l := f.open(Options{})
		must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
		later.Store(true)
		time.Sleep(lookAtShardsAgain)
		wantSentinel(t, "Append() once it is sharded by claim", l.Append(within(t, 2*time.Second), storetest.Grant("job", 2)), store.ErrRefused)
		documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 1)
	})
}
