package mongopeer

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) {
	play() // exits if this process isn't to run tests
	peertest.Main(m, shared)
}

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

var within = suites.Deadline

func TestRestartKeepsPortAndData(t *testing.T) {
	s := Start(t)
	c := dial(t, s.URI())
	if _, err := c.InsertOne(within(t), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatalf("insert = %v, want nil", err)
	}
	peertest.RestartsAtItsAddress(t, s.Server)
	if n, err := c.CountDocuments(within(t), bson.D{}); err != nil || n != 1 {
		t.Errorf("documents after Restart = %d, %v, want 1", n, err)
	}
}

func TestPausedPeerIsSilentUntilResumed(t *testing.T) {
	s := Start(t)
	c := dial(t, s.URI())
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error { return c.Database().Client().Ping(ctx, nil) })
}

func TestSharedPeerIsStartedOnce(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	first := peertest.IsShared(t, URI)
	if err := dial(t, first).Database().Client().Ping(within(t), nil); err != nil {
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
	peertest.EndsWithItsTestBinary(t, shared)
}
