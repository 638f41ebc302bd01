package mongo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// connections are the connections that were made, by their handshakes.
func (f *fakeServer) connections() (n int) {
	for _, name := range []string{"hello", "isMaster", "ismaster"} {
		for _, c := range f.sent(name) {
			if _, err := c.LookupErr("client"); err == nil {
				n++
			}
		}
	}
	return n
}

// In a bubble, so that a machine which does other things at that moment doesn't keep a find from being sent, or the
// driver from its late reply.
func TestAReadThatTimesOutKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, l *Ledger) error{
		"Get":         func(ctx context.Context, l *Ledger) error { _, err := l.Get(ctx, "job", 1); return err },
		"Tail":        func(ctx context.Context, l *Ledger) error { _, _, err := l.Tail(ctx, "job", 1); return err },
		"Trim":        func(ctx context.Context, l *Ledger) error { _, err := l.Trim(ctx, "job", 9); return err },
		"WorkerTypes": func(ctx context.Context, l *Ledger) error { _, err := l.WorkerTypes(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				f := &fakeServer{t: t, addr: "m0.test:27017", reply: func(name string, _ bson.Raw) bson.D {
					switch name {
					case "listCollections":
						return cursorOf(collectionEntry("collection", bson.D{}))
					case "find":
						<-answer
					}
					return nil
				}}
				// With one connection at most, a read waits until that of the last one is free or lost.
				client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr + "/?maxPoolSize=1").SetDialer(pipes{f}))
				must(t, "Connect()", err)
				t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
				l := f.open(Options{Client: client})
				must(t, "Init()", l.Init(within(t, patience)))
				before := f.connections()
				for range 5 {
					began := time.Now()
					wantErr(t, name+"() whose reply is late", call(within(t, 250*time.Millisecond), l), context.DeadlineExceeded)
					documenttest.Equal(t, "what that took", time.Since(began), 250*time.Millisecond)
					answer <- struct{}{}
				}
				close(answer)
				if err := call(within(t, patience), l); name != "Get" {
					wantErr(t, name+"() after that", err, nil)
				} else {
					wantErr(t, name+"() after that", err, store.ErrNotFound)
				}
				documenttest.Equal(t, "connections that 5 late replies cost", f.connections()-before, 0)
			})
		})
	}
}

func TestOperationsTakeNoPartInACallersTransaction(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(append(member(f.addr), bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}))
	client := dial(t, "mongodb://"+f.addr+"/?directConnection=true")
	l := f.open(Options{Client: client})
	session, err := client.StartSession()
	must(t, "StartSession()", err)
	defer session.EndSession(t.Context())
	must(t, "StartTransaction()", session.StartTransaction())
	ctx := mongo.NewSessionContext(within(t, patience), session)
	for name, call := range documenttest.Operations(l, storetest.Grant("job", 1)) {
		if err := call(ctx); err != nil && name != "Get" && name != "Init" {
			t.Errorf("%s() in a transaction = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"insert", "find", "hello", "delete", "listCollections", "create"} {
		for _, c := range f.sent(name) {
			if _, err := c.LookupErr("autocommit"); err == nil {
				t.Errorf("sent %s, want it outside of the transaction", c)
			}
		}
	}
	insert := f.sent("insert")
	if len(insert) != 1 {
		t.Fatalf("inserts sent = %d, want 1", len(insert))
	}
	if w, _ := insert[0].Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
		t.Errorf("sent %s, want write concern majority", insert[0])
	}
}
