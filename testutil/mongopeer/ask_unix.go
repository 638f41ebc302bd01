//go:build unix

package mongopeer

import (
	"context"
	"fmt"
	"net"
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

// await waits until a server that was started answers.
func await(ctx context.Context, p *process, addr string) error {
	for {
		_, err := askWithin(ctx, 2*time.Second, "mongodb://"+addr+"/?directConnection=true", bson.D{{Key: "hello", Value: 1}})
		switch {
		case err == nil:
			return nil
		case p.over():
			return fmt.Errorf("%s %s has ended: %s", p.program, strings.Join(p.flags, " "), &p.log)
		}
		if pause(ctx) != nil {
			return fmt.Errorf("%s %s doesn't answer: %w: %s", p.program, strings.Join(p.flags, " "), err, &p.log)
		}
	}
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

// freePort is a port that nothing listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
