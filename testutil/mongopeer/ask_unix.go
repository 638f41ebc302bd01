//go:build unix

package mongopeer

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// need is the path of a real server's program, in an environment variable.
func need(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" && slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), "mongod") {
		t.Fatalf("REQUIRE_STORES contains mongod: %s names no program", variable)
	}
	if path == "" {
		t.Skipf("%s names no program: not shown on real servers", variable)
	}
	return path
}

// ask runs a command on the database admin.
func ask(ctx context.Context, uri string, command bson.D) (bson.Raw, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	return client.Database("admin").RunCommand(ctx, command).Raw()
}

func askWithin(ctx context.Context, d time.Duration, uri string, command bson.D) (bson.Raw, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return ask(ctx, uri, command)
}

// pause waits a moment before another try.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
