package mongopeer

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// URI is the URI of a MongoDB server for tests: that of the environment variable
// MONGODB_URI if it is set, else that of a peer which all tests of this test
// binary share. If there is neither, it skips the test, or fails it if
// REQUIRE_STORES contains "mongo". The server may hold other data: a test must
// use a database of its own.
func URI(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		return uri
	}
	s, err := shared()
	if err != nil {
		unavailable(t, err)
	}
	return s.URI()
}

// shared starts the shared peer. It has no cleanup: it outlives every single
// test, sees the end of the test binary by its pipe, and then removes its data.
var shared = sync.OnceValues(func() (*Server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp("", "mongopeer-")
	if err != nil {
		return nil, err
	}
	s := &Server{addr: "127.0.0.1:0", data: data, log: &process.Log{}}
	if err := s.run(path, "-remove"); err != nil {
		_ = os.RemoveAll(data)
		return nil, err
	}
	return s, nil
})

// unavailable ends a test that can't have its peer.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), "mongo") {
		t.Fatalf("REQUIRE_STORES contains mongo: %v", err)
	}
	t.Skipf("no MongoDB server: %v", err)
}
