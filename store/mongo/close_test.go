package mongo

import (
	"context"
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
	"github.com/slotlease/slotlease/testutil/storetest"
)

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

// The driver's Disconnect waits for a heartbeat that begins at that moment, which lasts for 10 s. It leaves the URI's name of a
// server for the set's own, and then doesn't wait for the heartbeat under the first name.
func TestCloseEndsHeartbeats(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"m0.test:27017", "other.test:27017"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serveReplicaSet(t, inBubble)
				for _, m := range s.members {
					m.slow.Store(int64(2 * time.Millisecond))
				}
				clients := 100
				if race.Enabled {
					clients = 20
				}
				for i := range clients {
					link := &otherName{fakeLink: fakeLink{set: s}}
					o := options.Client().ApplyURI("mongodb://" + host + "/?replicaSet=rs0").SetDialer(link)
					hangUp := endable(o)
					client, err := mongo.Connect(o)
					must(t, "Connect()", err)
					l := open(t, Options{Client: client})
					l.own, l.hangUp = true, hangUp
					// Whole milliseconds, as all that goes on here: so heartbeats begin at the moment of Close.
					time.Sleep(time.Duration(i%12) * time.Millisecond)
					began := time.Now()
					wantErr(t, "Close()", l.Close(context.Background()), nil)
					if took := time.Since(began); took > 2*heartbeatGrace {
						t.Fatalf("Close() took %v, want it to end with the heartbeats", took)
					}
					time.Sleep(100 * time.Millisecond)
					if n := link.open.Load(); n > 0 {
						t.Fatalf("%d connections are open after Close(), want none", n)
					}
				}
				time.Sleep(time.Minute) // The heartbeats end.
			})
		})
	}
}

// The driver's Disconnect looks for a server on which to end its sessions, for as long as its context and the URI let it.
func TestCloseWaitsForNoPrimary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"insert": commandError(10107, "NotWritablePrimary", "not primary")})})
		sessions := bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}
		f.greet(append(member(f.addr), sessions))
		l := f.open(Options{})
		wantSentinel(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)), nil)
		f.greet(append(member(f.addr), sessions, bson.E{Key: "ismaster", Value: false}, bson.E{Key: "isWritablePrimary", Value: false}))
		began := time.Now()
		wantErr(t, "Close()", l.Close(context.Background()), nil)
		if took := time.Since(began); took > 2*heartbeatGrace {
			t.Errorf("Close() without a primary took %v, want about %v", took, heartbeatGrace)
		}
		time.Sleep(time.Minute) // The heartbeats end.
	})
}
