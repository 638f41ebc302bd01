package mongo

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/mongowire"
	"github.com/slotlease/slotlease/internal/pipenet"
	"github.com/slotlease/slotlease/internal/suites"
)

// fakeServer speaks as much of MongoDB's wire protocol as the driver needs, and
// answers each command as the test says. It stands in for what the test peer
// can't be: a router, a member of a replica set, a server that refuses, throttles
// or confirms nothing. Replies that stand in tests are written after MongoDB's and
// Microsoft's documentation; those in testdata/replies were recorded.
type fakeServer struct {
	steps atomic.Int64 // hellos of operations that are answered as by a primary that has just stepped down
	t     testing.TB
	addr  string
	// greeting is added to the reply to hello.
	greeting bson.D
	// reply answers a command other than hello, or returns nil for ok.
	reply func(name string, command bson.Raw) bson.D
	// whole answers hello, too. It is used instead of greeting and reply.
	whole func(name string, command bson.Raw) bson.D
	// now is the server's clock; it stands if there is none.
	now func() time.Time
	// secured, if not nil, is for TLS.
	secured *tls.Config
	// slow is how long each reply takes.
	slow atomic.Int64

	mu       sync.Mutex
	commands []bson.Raw
}

// network is that of the fake servers.
var network = pipenet.New()

// serve starts a fake server, which ends with the test.
func serve(t testing.TB, f *fakeServer) *fakeServer {
	t.Helper()
	f.t, f.addr = t, network.Address()
	listener := network.Listen(f.addr)
	if f.secured != nil { // Both sides of a refusal write at once, which needs the buffers of sockets.
		var err error
		listener, err = tls.Listen("tcp", "127.0.0.1:0", f.secured)
		must(t, "Listen()", err)
		f.addr = listener.Addr().String()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() { f.talk(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return f
}

// sent returns the commands of a name that have arrived.
func (f *fakeServer) sent(name string) []bson.Raw {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.commands), func(c bson.Raw) bool { return c.Index(0).Key() != name })
}

func (f *fakeServer) talk(conn net.Conn) {
	_ = mongowire.Serve(conn, func(command bson.Raw) bson.D {
		time.Sleep(time.Duration(f.slow.Load()))
		return f.answer(command)
	})
	_ = conn.Close()
}

func (f *fakeServer) answer(command bson.Raw) bson.D {
	name := command.Index(0).Key()
	f.mu.Lock()
	f.commands = append(f.commands, command)
	greeting := f.greeting
	f.mu.Unlock()
	if f.whole != nil {
		return f.whole(name, command)
	}
	switch name {
	case "hello", "isMaster", "ismaster":
		localTime := bson.DateTime(1_700_000_000_123)
		if f.now != nil {
			localTime = bson.NewDateTimeFromTime(f.now())
		}
		d := bson.D{
			{Key: "ok", Value: 1.0},
			{Key: "helloOk", Value: true},
			{Key: "ismaster", Value: true},
			{Key: "isWritablePrimary", Value: true},
			{Key: "maxWireVersion", Value: int32(21)},
			{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
			{Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
			{Key: "maxWriteBatchSize", Value: int32(100_000)},
			{Key: "localTime", Value: localTime},
		}
		_, err := command.LookupErr("helloOk")
		for _, e := range greeting {
			if e.Key == "topologyVersion" && err == nil {
				continue // With it, the driver's monitor would wait for a change.
			}
			d = slices.DeleteFunc(d, func(old bson.E) bool { return old.Key == e.Key })
			d = append(d, e)
		}
		if err != nil && f.steps.Add(-1) >= 0 {
			d = append(slices.DeleteFunc(d, func(e bson.E) bool { return strings.HasSuffix(strings.ToLower(e.Key), "primary") && e.Key != "primary" }), bson.E{Key: "isWritablePrimary", Value: false})
		}
		return d
	}
	if f.reply != nil {
		if d := f.reply(name, command); d != nil {
			return d
		}
	}
	switch name {
	case "listCollections":
		collection, _ := command.Lookup("filter", "name").StringValueOK()
		return cursorOf(bson.D{{Key: "name", Value: collection}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{}}})
	case "listIndexes", "find", "aggregate":
		return cursorOf()
	}
	return bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: int32(1)}}
}

// answers are replies to commands by name.
func answers(replies map[string]bson.D) func(name string, command bson.Raw) bson.D {
	return func(name string, _ bson.Raw) bson.D { return replies[name] }
}

// cursorOf is a reply with all its documents in one batch.
func cursorOf(docs ...bson.D) bson.D {
	batch := bson.A{}
	for _, d := range docs {
		batch = append(batch, d)
	}
	return bson.D{
		{Key: "ok", Value: 1.0},
		{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "WorkerProcess.WorkerLeases"}, {Key: "firstBatch", Value: batch}}},
	}
}

// commandError is the reply of a command that fails as a whole.
func commandError(code int32, name, message string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: message}}
}

// writeError is the reply of an insert whose document is refused.
func writeError(code int32, message string) bson.D {
	return bson.D{
		{Key: "ok", Value: 1.0},
		{Key: "n", Value: int32(0)},
		{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: int32(0)}, {Key: "code", Value: code}, {Key: "errmsg", Value: message}}}},
	}
}

// unconfirmed is the reply of an insert that was made, but not confirmed.
func unconfirmed(code int32, message string, also ...bson.E) bson.D {
	return append(bson.D{
		{Key: "ok", Value: 1.0},
		{Key: "n", Value: int32(1)},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: code}, {Key: "errmsg", Value: message}}},
	}, also...)
}

// member is what a primary of a replica set says of itself.
func member(me string) bson.D {
	return bson.D{
		{Key: "setName", Value: "rs0"},
		{Key: "setVersion", Value: int32(1)},
		{Key: "me", Value: me},
		{Key: "primary", Value: me},
		{Key: "hosts", Value: bson.A{me}},
		{Key: "secondary", Value: false},
	}
}

// router is what mongos says of itself.
func router() bson.D { return bson.D{{Key: "msg", Value: "isdbgrid"}} }

// greet adds to the reply to hello, whatever listens already.
func (f *fakeServer) greet(d bson.D) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.greeting = d
}

// open opens a ledger on the fake server.
func (f *fakeServer) open(o Options) *Ledger {
	f.t.Helper()
	if o.URI == "" && o.Client == nil {
		o.URI = "mongodb://" + f.addr + "/"
	}
	return open(f.t, o)
}

// patience bounds one operation of a test.
var patience = suites.Limit(30*time.Second, 2*time.Minute)
