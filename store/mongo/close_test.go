package mongo

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// closeAtAHeartbeat closes ledgers on a set, each with its own client, when heartbeats begin: the
// driver's Disconnect waits for one that begins at that moment, which lasts for 10 s.
func closeAtAHeartbeat(t *testing.T, end func(t *testing.T, l *Ledger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serveReplicaSet(t, inBubble)
		for _, m := range s.members {
			m.slow.Store(int64(2 * time.Millisecond))
		}
		clients := 250
		if race.Enabled {
			clients = 50
		}
		for range clients {
			o := options.Client().ApplyURI("mongodb://" + s.members[0].addr + "/?replicaSet=rs0").SetDialer(&fakeLink{set: s})
			lines := linesOf(o)
			client, err := mongo.Connect(o)
			must(t, "Connect()", err)
			l := open(t, Options{Client: client})
			l.own, l.lines = true, lines
			// Whole milliseconds, as all that goes on here: so heartbeats begin at the moment of Close.
			time.Sleep(time.Duration(rand.IntN(12)) * time.Millisecond)
			if rand.IntN(2) == 0 {
				must(t, "Ping()", client.Ping(within(t, patience), nil))
			}
			end(t, l)
		}
		time.Sleep(time.Minute) // The heartbeats end.
	})
}

func TestCloseEndsHeartbeats(t *testing.T) {
	t.Parallel()
	closeAtAHeartbeat(t, func(t *testing.T, l *Ledger) {
		t.Helper()
		began := time.Now()
		wantErr(t, "Close()", l.Close(context.Background()), nil)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Fatalf("Close() took %v, want it to end within some round trips of 2 ms", took)
		}
	})
}

// A host that doesn't answer lets the driver's connections wait for longer than its Disconnect should.
func TestCloseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	closeAtAHeartbeat(t, func(t *testing.T, l *Ledger) {
		t.Helper()
		l.lines = &lines{} // The client's connections aren't closed with the ledger.
		began := time.Now()
		wantErr(t, "Close()", l.Close(within(t, time.Second)), nil)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Fatalf("Close() took %v, want it to end with its context, after 1 s", took)
		}
	})
}

// otherName reaches a set by another name of its first member, too, and counts open connections.
type otherName struct {
	fakeLink
	open atomic.Int32
}

func (n *otherName) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address == "other.test:27017" {
		address = n.set.members[0].addr
	}
	conn, err := n.fakeLink.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.open.Add(1)
	return &counted{Conn: conn, closed: sync.OnceFunc(func() { n.open.Add(-1) })}, nil
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// The driver leaves the URI's name of a server for the set's own, and then Disconnect doesn't wait
// for the heartbeat under the first name.
func TestCloseEndsConnectionsToServersThatTheDriverHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveReplicaSet(t, inBubble)
		for _, m := range s.members {
			m.slow.Store(int64(2 * time.Millisecond))
		}
		left := 0
		for range 50 {
			link := &otherName{fakeLink: fakeLink{set: s}}
			o := options.Client().ApplyURI("mongodb://other.test," + s.members[1].addr + "/?replicaSet=rs0").SetDialer(link)
			lines := linesOf(o)
			client, err := mongo.Connect(o)
			must(t, "Connect()", err)
			l := open(t, Options{Client: client})
			l.own, l.lines = true, lines
			time.Sleep(time.Duration(rand.IntN(12)) * time.Millisecond)
			wantErr(t, "Close()", l.Close(context.Background()), nil)
			time.Sleep(100 * time.Millisecond)
			if link.open.Load() > 0 {
				left++
			}
		}
		if left > 0 {
			t.Errorf("%d of 50 clients have connections 100 ms after Close(), want none", left)
		}
		time.Sleep(time.Minute) // The heartbeats end.
	})
}

func TestCloseEndsOperationsByAClientOfTheCallers(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: answers(nil)})
	asked, end := make(chan struct{}), make(chan struct{})
	var hangs atomic.Bool
	interrupt(f, &hangs, "insert", "", func() bson.D { close(asked); <-end; return nil })
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	defer close(end)
	l := open(t, Options{Client: client})
	must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
	hangs.Store(true)
	done := make(chan error, 1)
	go func() { done <- l.Append(context.Background(), storetest.Grant("job", 2)) }()
	<-asked
	began := time.Now()
	wantErr(t, "Close()", l.Close(within(t, patience)), nil)
	wantErr(t, "Append() under way", <-done, store.ErrClosed)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("Close() took %v, want it to end the append at once", took)
	}
}
