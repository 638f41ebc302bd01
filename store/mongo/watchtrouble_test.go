package mongo

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// One reply that is lost while a watch looks at the collection keeps all operations from it.
func TestALostReplyToAWatchKeepsOperationsWaitingForSecondsOnly(t *testing.T) {
	t.Parallel()
	free, hangs := make(chan struct{}), make(chan struct{})
	var lost atomic.Bool
	f := serve(t, &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
		if name == "listCollections" && !lost.Swap(true) {
			close(hangs)
			<-free
		}
		return nil
	}})
	t.Cleanup(func() { close(free) })
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second})
	w := watches(t.Context(), l)
	<-hangs
	var err error
	for began := time.Now(); time.Since(began) < 2*answersIn; {
		if err = l.Append(within(t, 2*time.Second), storetest.Grant("job", 1)); err == nil {
			break
		}
	}
	must(t, "Append() soon after a reply to a watch was lost", err)
	wantErr(t, "Watch()", <-w.ended, context.DeadlineExceeded)
}

// A server that answers nothing to the aggregate is given up.
func TestAWatchThatDoesNotBeginIsGivenUp(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	f := serve(t, &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
		if name == "aggregate" {
			<-free
		}
		return nil
	}})
	t.Cleanup(func() { close(free) })
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second})
	w := watches(t.Context(), l)
	select {
	case err := <-w.ended:
		wantErr(t, "Watch()", err, context.DeadlineExceeded)
	case <-time.After(4 * answersIn):
		t.Error("Watch() waits for a reply to its aggregate")
	}
}

// Servers behind one address don't know each other's cursors. The driver's own streams would begin anew at
// once, and for ever; workers do so when it is time.
func TestACursorThatIsNotFoundEndsAWatch(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: begun(func() bson.D { return commandError(43, "CursorNotFound", "cursor id 7 not found") })})
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second})
	if err := l.Watch(within(t, patience), func(string) {}); err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Watch() = %v, want an error after which it is tried again", err)
	}
	documenttest.Equal(t, "getMore", len(f.sent("getMore")), 1)
}

// A stream that falls off the oplog passes.
func TestAStreamThatFallsOffTheLogIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []int32{136, 9, 2} {
		f := serve(t, &fakeServer{reply: begun(func() bson.D {
			return commandError(code, "CappedPositionLost", "CollectionScan died due to position in capped collection being deleted")
		})})
		f.greet(member(f.addr))
		l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second})
		err := l.Watch(within(t, patience), func(string) {})
		if errors.Is(err, errors.ErrUnsupported) || err == nil {
			t.Errorf("Watch() = %v, want an error after which it is tried again", err)
		}
	}
}

// behind is a clock that is off, with contexts that say what it is when they end.
type behind struct{ clock.Clock }

func (c behind) Now() time.Time                  { return c.Clock.Now().Add(-time.Hour) }
func (c behind) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c behind) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
func (c behind) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.WithDeadline(ctx, c.Now().Add(d))
}

func (c behind) WithDeadline(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := c.AfterFunc(c.Until(at), cancel)
	return dated{ctx, at}, func() { timer.Stop(); cancel() }
}

type dated struct {
	context.Context
	at time.Time
}

func (d dated) Deadline() (time.Time, bool) { return d.at, true }

func TestAWatchGoesOnWithAClockThatIsOff(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: begun(func() bson.D {
		time.Sleep(2 * time.Second)
		return bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "nextBatch", Value: bson.A{}}}}}
	})})
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/", ServerSkew: time.Second, Clock: behind{clock.New()}})
	w := watches(t.Context(), l)
	select {
	case err := <-w.ended:
		t.Errorf("Watch() = %v, want it to go on", err)
	case <-time.After(4 * time.Second):
	}
	must(t, "Close()", l.Close(t.Context()))
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

// A client of the caller's own may have no connection to spare. One operation finds out.
func TestAWatchYieldsTheOnlyConnection(t *testing.T) {
	t.Parallel()
	ends, asked := make(chan struct{}), make(chan struct{}, 1)
	f := serve(t, &fakeServer{reply: begun(func() bson.D {
		asked <- struct{}{}
		<-ends
		return nil
	})})
	t.Cleanup(func() { close(ends) }) // Before the server waits for its connections.
	f.greet(member(f.addr))
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr + "/?maxPoolSize=1"))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	l := open(t, Options{Client: client, ServerSkew: time.Second})
	w := watches(t.Context(), l)
	<-asked
	if l.Append(within(t, 100*time.Millisecond), storetest.Grant("job", 1)) == nil {
		t.Fatal("the append took the connection of the watch")
	}
	wantErr(t, "Watch()", <-w.ended, errors.ErrUnsupported)
	must(t, "Append() after the watch", l.Append(within(t, patience), storetest.Grant("job", 1)))
	wantErr(t, "Watch() again", l.Watch(within(t, patience), func(string) {}), errors.ErrUnsupported)
}
