package mongo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// What breaks off in the middle isn't whole: a worker would take the newest record of what came for the head.
func TestAReadThatBreaksOffIsAnError(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	f.reply = func(name string, _ bson.Raw) bson.D {
		switch name {
		case "find":
			d := cursorOf(encode(storetest.Grant("job", 2)))
			d[1].Value.(bson.D)[0].Value = int64(7)
			return d
		case "getMore":
			return commandError(175, "QueryPlanKilled", "query plan killed")
		}
		return nil
	}
	serve(t, f)
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0", ServerSkew: time.Second})
	if records, _, err := l.Tail(suites.Deadline(t), "job", 5); err == nil {
		t.Errorf("Tail() that breaks off = %v, want an error", records)
	}
	if records, err := l.Page(suites.Deadline(t), "job", 0, 5); err == nil {
		t.Errorf("Page() that breaks off = %v, want an error", records)
	}
	if types, err := l.WorkerTypes(suites.Deadline(t)); err == nil {
		t.Errorf("WorkerTypes() that breaks off = %v, want an error", types)
	}
}

// The cursor of a change stream that is left alone stays in the server for minutes.
func TestAWatchThatEndsEndsItsCursor(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	ctx, end := context.WithCancel(t.Context())
	f.reply = begun(func() bson.D {
		return bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "nextBatch", Value: bson.A{
			bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: "1"}}}, {Key: "operationType", Value: "insert"}, {Key: "documentKey", Value: bson.D{{Key: "_id", Value: "job:0000000000000000001"}}}},
		}}}}}
	})
	serve(t, f)
	f.greet(member(f.addr))
	err := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0", ServerSkew: time.Second}).Watch(ctx, func(string) { end() })
	if err == nil || len(f.sent("killCursors")) != 1 {
		t.Errorf("Watch() = %v, and the server got %v, want one killCursors", err, f.sent("killCursors"))
	}
}

// A client that takes the place of another leaves no connection of that one open.
func TestAClientThatIsReplacedIsDisconnected(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	mock := clock.NewMock()
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0&heartbeatFrequencyMS=500", Clock: mock, ServerSkew: time.Second})
	_, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	f.greet(bson.D{})
	first := l.to()
	for ; l.to() == first; mock.Add(anewAfter) {
		_ = until(t, l)
	}
	suites.Eventually(t, "the former client is disconnected", func() bool {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		return errors.Is(first.client.Ping(ended, nil), mongo.ErrClientDisconnected)
	})
}
