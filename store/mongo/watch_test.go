package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// watching is a call of Watch.
type watching struct {
	told  chan string
	ended chan error
}

func watches(ctx context.Context, l *Ledger) watching {
	w := watching{make(chan string, 100), make(chan error, 1)}
	go func() { w.ended <- l.Watch(ctx, func(workerType string) { w.told <- workerType }) }()
	return w
}

// hears fails unless a hint for a type comes within some time, and no other one before.
func (w watching) hears(t *testing.T, workerType string, most time.Duration) {
	t.Helper()
	select {
	case got := <-w.told:
		documenttest.Equal(t, "hint", got, workerType)
	case err := <-w.ended:
		t.Fatalf("Watch() = %v, want a hint for %s", err, workerType)
	case <-time.After(most):
		t.Fatalf("no hint for %s within %v", workerType, most)
	}
}

// ofKind is a record that isn't a grant.
func ofKind(workerType string, seq int64, kind store.Kind) store.Record {
	r := storetest.Grant(workerType, seq)
	r.Kind, r.WindowStart = kind, r.WindowEnd
	return r
}

func TestAWatchHearsOfReleasesThroughElections(t *testing.T) {
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, b *Ledger) {
		ctx, cancel := context.WithCancel(t.Context())
		w := watches(ctx, a)
		time.Sleep(time.Second)
		seq := map[string]int64{}
		add := func(workerType string, kind store.Kind) {
			t.Helper()
			seq[workerType]++
			must(t, "Append()", b.Append(within(t, 20*time.Second), ofKind(workerType, seq[workerType], kind)))
		}
		for _, kind := range []store.Kind{store.KindReset, store.KindDone, store.KindOutcome, store.KindSighting} {
			add("kept", kind)
		}
		must(t, "Append()", b.Append(within(t, time.Second), storetest.Grant("granted", 1)))
		for _, kind := range []store.Kind{store.KindRelease, store.KindOverride, "a kind to come"} {
			add("freed", kind)
			w.hears(t, "freed", 20*time.Millisecond)
		}
		// In an election it ends, and can be begun anew.
		for _, end := range []func(*fakeMember){s.stepDown, s.kill} {
			old := s.primary()
			end(old)
			if err := <-w.ended; err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, context.Canceled) {
				t.Fatalf("Watch() = %v in an election, want an error after which it is tried again", err)
			}
			time.Sleep(time.Second)
			s.elect(s.other(old))
			time.Sleep(10 * time.Second)
			w = watches(ctx, a)
			time.Sleep(time.Second)
			add("later", store.KindRelease)
			w.hears(t, "later", 20*time.Millisecond)
			if old.down {
				s.start(old)
			}
		}
		// What only a minority has is no reason to look, and may never be one.
		old := s.primary()
		s.split(old)
		wantSentinel(t, "Append() on the primary that is cut off", b.Append(within(t, time.Second), ofKind("lost", 1, store.KindRelease)), nil)
		s.elect(s.other(old))
		s.heal(old)
		time.Sleep(time.Second)
		select {
		case err := <-w.ended:
			t.Logf("Watch() = %v", err)
			w = watches(ctx, a)
			time.Sleep(10 * time.Second)
		default:
		}
		add("after", store.KindRelease)
		w.hears(t, "after", 20*time.Millisecond)
		cancel()
		wantErr(t, "Watch()", <-w.ended, context.Canceled)
	})
}

func TestAnIdleWatchCostsTwoCommandsAMinute(t *testing.T) {
	suites.Prove(t, "it waits for half a minute")
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, _ *Ledger) {
		counted := func() int {
			before := len(s.primary().sent("getMore"))
			time.Sleep(time.Hour)
			return len(s.primary().sent("getMore")) - before
		}
		w := watches(t.Context(), a)
		if n := counted(); n > 121 {
			t.Errorf("%d getMore in an hour, want 120", n)
		}
		// The time-out of a client cuts it short once. From then on the server waits for less.
		client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.members[0].addr + "/?replicaSet=rs0&timeoutMS=8000").SetDialer(&fakeLink{set: s}))
		must(t, "Connect()", err)
		t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
		hasty := open(t, Options{Client: client})
		w2 := watches(t.Context(), hasty)
		wantErr(t, "Watch()", <-w2.ended, context.DeadlineExceeded)
		w2 = watches(t.Context(), hasty)
		if n := counted(); n > 120+901 {
			t.Errorf("%d getMore in an hour, want 120 of the one, and 900 of the other", n)
		}
		must(t, "Close()", hasty.Close(t.Context()))
		wantErr(t, "Watch()", <-w2.ended, store.ErrClosed)
		must(t, "Close()", a.Close(t.Context()))
		wantErr(t, "Watch()", <-w.ended, store.ErrClosed)
	})
}

// begun answers as a server with change streams does: then more answers.
func begun(more func() bson.D) func(name string, command bson.Raw) bson.D {
	return func(name string, _ bson.Raw) bson.D {
		switch name {
		case "aggregate":
			d := cursorOf()
			d[1].Value.(bson.D)[0].Value = int64(7)
			return d
		case "getMore":
			return more()
		}
		return nil
	}
}

func TestAWatchEndsWhenTheServerCanNotGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin, more bson.D
		want        error // nil: another one, after which it is tried again
		says        string
	}{
		"a standalone server":                  {begin: commandError(40573, "Location40573", "The $changeStream stage is only supported on replica sets"), want: errors.ErrUnsupported, says: "has no change streams"},
		"a server that doesn't know them":      {begin: commandError(40324, "Location40324", "Unrecognized pipeline stage name: '$changeStream'"), want: errors.ErrUnsupported},
		"Amazon DocumentDB, not enabled":       {begin: commandError(136, "CappedPositionLost", "modifyChangeStreams has not been run for your collection/database/cluster."), want: errors.ErrUnsupported},
		"a service without them":               {begin: commandError(codeNotImplemented, "NotImplemented", "not implemented"), want: errors.ErrUnsupported},
		"no right to":                          {begin: commandError(codeUnauthorized, "Unauthorized", `not authorized on jobs to execute command { aggregate: "leases", pipeline: [ { $changeStream: {} } ] }`), want: store.ErrDenied, says: "not authorized: changeStream on jobs.leases"},
		"a server that has other troubles":     {begin: commandError(1, "InternalError", "out of memory"), says: "out of memory"},
		"a cursor that isn't found":            {more: commandError(43, "CursorNotFound", "cursor id 7 not found"), says: "not found"},
		"a stream that falls off the log":      {more: commandError(136, "CappedPositionLost", "CollectionScan died"), says: "died"},
		"an odd error under way":               {more: commandError(2, "BadValue", "CollectionScan died"), says: "died"},
		"an error under way":                   {more: commandError(96, "OperationFailed", "the resume point may no longer be in the oplog"), says: "resume point"},
		"a collection that is dropped":         {more: bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "jobs.leases"}, {Key: "nextBatch", Value: bson.A{}}}}}, says: "dropped or renamed"},
		"a service with streams of its own":    {begin: commandError(1, "InternalError", "must not be asked"), want: errors.ErrUnsupported},
		"a server of another topology, asked":  {begin: commandError(codeBadValue, "BadValue", "'$changeStream' is of another form"), want: errors.ErrUnsupported},
		"a throttling server, as Cosmos DB is": {begin: commandError(codeThrottled, "RequestRateTooLarge", "Error=16500, RetryAfterMs=20"), want: store.ErrThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeServer{}
			more := begun(func() bson.D { return c.more })
			f.reply = func(name string, command bson.Raw) bson.D {
				if name == "aggregate" && c.begin != nil {
					return c.begin
				}
				return more(name, command)
			}
			serve(t, f)
			d := member(f.addr)
			if strings.Contains(name, "of its own") {
				d[0].Value = "globaldb"
			}
			f.greet(d)
			err := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases&unsafeUnverified=true", ServerSkew: time.Second}).Watch(within(t, patience), func(string) { t.Error("a hint") })
			if c.want == nil && (err == nil || errors.Is(err, errors.ErrUnsupported)) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Watch() = %v, want %v", err, c.want)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "mongo: watch: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Watch() = %v, want it to say %q", err, c.says)
			}
			documenttest.Equal(t, "getMore", len(f.sent("getMore")), map[bool]int{true: 1}[c.more != nil])
		})
	}
}

// What was acknowledged is lost with a collection that is dropped, whatever there is in its place.
func TestAStampNamesTheCollectionThatTookTheDroppedOnesPlace(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	uuid := atomic.Int32{}
	more := begun(func() bson.D {
		uuid.Store(1)
		return bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "jobs.leases"}, {Key: "nextBatch", Value: bson.A{}}}}}
	})
	f.reply = func(name string, command bson.Raw) bson.D {
		switch name {
		case "listCollections":
			entry := append(collectionEntry("collection", nil), bson.E{Key: "info", Value: bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: []byte{byte(uuid.Load())}}}}})
			return cursorOf(entry)
		case "find":
			return cursorOf()
		}
		return more(name, command)
	}
	serve(t, f)
	l := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"})
	history := func() string {
		_, _, err := l.Tail(within(t, patience), "job", 1)
		must(t, "Tail()", err)
		s, err := l.Now(within(t, patience))
		must(t, "Now()", err)
		return s.History
	}
	documenttest.Equal(t, "history", history(), "00")
	if err := l.Watch(within(t, patience), func(string) {}); err == nil || !strings.Contains(err.Error(), "dropped or renamed") {
		t.Errorf("Watch() = %v, want that the collection was dropped", err)
	}
	documenttest.Equal(t, "history after the collection was dropped", history(), "01")
}

// A primary that is behind what it has shown before was restored from a snapshot, together with its collection.
func TestAPrimaryThatIsBehindWhatItHasShownHasAnotherHistory(t *testing.T) {
	t.Parallel()
	f := &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
		switch name {
		case "listCollections":
			return cursorOf(append(collectionEntry("collection", nil), bson.E{Key: "info", Value: bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: []byte{7}}}}}))
		case "find":
			return cursorOf()
		}
		return nil
	}}
	serve(t, f)
	l := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"})
	for _, c := range []struct {
		term    int64
		seconds uint32
		want    string
	}{{3, 100, "07"}, {4, 90, "07"}, {4, 95, "07"}, {3, 100, "07, back at 3.429496729601"}, {4, 90, "07, back at 3.429496729601"}} {
		f.greet(append(member(f.addr), bson.E{Key: "lastWrite", Value: bson.D{
			{Key: "opTime", Value: bson.D{{Key: "ts", Value: bson.Timestamp{T: c.seconds, I: 1}}, {Key: "t", Value: c.term}}},
		}}))
		_, _, err := l.Tail(within(t, patience), "job", 1)
		must(t, "Tail()", err)
		s, err := l.Now(within(t, patience))
		must(t, "Now()", err)
		documenttest.Equal(t, fmt.Sprintf("history at %d.%d", c.term, c.seconds), s.History, c.want)
	}
}

// A server that answers at once that there is no news isn't asked again at once.
func TestAServerWithoutPatienceIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked := make(chan time.Duration, 10)
		n := 0
		f := serve(t, &fakeServer{reply: begun(func() bson.D {
			asked <- time.Since(began)
			events := bson.A{}
			if n++; n == 3 {
				events = append(events, bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: "1"}}}, {Key: "operationType", Value: "insert"}, {Key: "documentKey", Value: bson.D{{Key: "_id", Value: int64(5)}}}})
			}
			return bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "nextBatch", Value: events}}}}
		})})
		f.greet(member(f.addr))
		l := f.open(Options{ServerSkew: time.Second})
		w := watches(t.Context(), l)
		w.hears(t, "", 3*emptyGap) // A document that is no record may be of any type.
		for i := range 3 {
			documenttest.Equal(t, "when it was asked", <-asked, time.Duration(i)*emptyGap)
		}
		must(t, "Close()", l.Close(t.Context()))
		wantErr(t, "Watch()", <-w.ended, store.ErrClosed)
		wantErr(t, "Watch() after Close()", l.Watch(t.Context(), func(string) {}), store.ErrClosed)
		time.Sleep(time.Minute) // The heartbeats end.
	})
}

// A watch keeps a connection of the pool for itself, for which no other operation may have to wait.
func TestAWatchTakesNoConnectionFromOthers(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?maxPoolSize=1", ServerSkew: time.Second})
	wantErr(t, "Watch()", l.Watch(within(t, patience), func(string) {}), errors.ErrUnsupported)
}

// A server that is gone without a word is given up, so that the caller can begin anew.
func TestAWatchOnAServerThatHasSilentlyGoneEnds(t *testing.T) {
	suites.Prove(t, "it waits for ten seconds")
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, _ *Ledger) {
		w := watches(t.Context(), a)
		time.Sleep(time.Second)
		for _, m := range s.members {
			m.slow.Store(int64(time.Hour))
		}
		select {
		case err := <-w.ended:
			wantErr(t, "Watch()", err, context.DeadlineExceeded)
		case <-time.After(2*awaitsFor + 2*answersIn):
			t.Error("Watch() goes on")
		}
		for _, m := range s.members {
			m.slow.Store(0)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A server that answers nothing to the aggregate is given up.
func TestAWatchThatDoesNotBeginIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
			if name == "aggregate" {
				time.Sleep(time.Hour)
			}
			return nil
		}})
		f.greet(member(f.addr))
		began := time.Now()
		wantErr(t, "Watch()", f.open(Options{ServerSkew: time.Second}).Watch(t.Context(), func(string) {}), context.DeadlineExceeded)
		documenttest.Equal(t, "how long Watch() waits for a reply to its aggregate", time.Since(began), answersIn)
	})
}

// A client that is made anew ends the watch by the old one, and not as if the ledger were closed.
func TestAWatchByAnOldClientEnds(t *testing.T) {
	t.Parallel()
	free, asked := make(chan struct{}), make(chan struct{}, 100)
	f := serve(t, &fakeServer{reply: begun(func() bson.D { asked <- struct{}{}; <-free; return nil })})
	t.Cleanup(func() { close(free) })
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second})
	w := watches(t.Context(), l)
	<-asked
	_ = l.to().client.Disconnect(context.Background())
	if err := <-w.ended; err == nil || errors.Is(err, store.ErrClosed) {
		t.Errorf("Watch() = %v, want an error after which it is tried again", err)
	}
}
