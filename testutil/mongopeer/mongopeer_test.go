package mongopeer

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// dial connects to a server for the time of the test.
func dial(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("mongopeer").Collection(strings.ReplaceAll(t.Name(), "/", "-"))
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRestartKeepsPortAndData(t *testing.T) {
	s := Start(t)
	uri := s.URI()
	c := dial(t, uri)
	if _, err := c.InsertOne(within(t, time.Minute), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatalf("insert = %v, want nil", err)
	}
	s.Kill()
	if conn, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		_ = conn.Close()
		t.Errorf("%s answers after Kill, want it refused", s.Addr())
	}
	s.Restart()
	if got := s.URI(); got != uri {
		t.Errorf("URI() after Restart = %q, want %q", got, uri)
	}
	if n, err := c.CountDocuments(within(t, time.Minute), bson.D{}); err != nil || n != 1 {
		t.Errorf("documents after Restart = %d, %v, want 1", n, err)
	}
}

func TestPausedPeerIsSilentUntilResumed(t *testing.T) {
	s := Start(t)
	c := dial(t, s.URI())
	if err := c.Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Fatalf("ping = %v, want nil", err)
	}
	s.Pause()
	if err := c.Database().Client().Ping(within(t, 300*time.Millisecond), nil); err == nil {
		t.Error("ping of a paused peer = nil, want a timeout")
	}
	s.Resume()
	if err := c.Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Errorf("ping after Resume = %v, want nil", err)
	}
}

func TestSharedPeerIsStartedOnce(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	first := peertest.IsShared(t, URI)
	if err := dial(t, first).Database().Client().Ping(within(t, time.Minute), nil); err != nil {
		t.Errorf("ping = %v, want nil", err)
	}
}

func TestURIPrefersTheEnvironment(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://db.example/")
	if got := URI(t); got != "mongodb://db.example/" {
		t.Errorf("URI() = %q, want that of MONGODB_URI", got)
	}
}

func TestPeerEndsWithItsTestBinary(t *testing.T) {
	if _, err := Program(); err != nil {
		kind.Unavailable(t, err)
	}
	peertest.EndsWithItsTestBinary(t)
}
