package cosmospeer

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// key is the account key of the peer, which takes any.
const key = "YW55IGtleSBvcGVucyB0aGUgdGVzdCBwZWVy"

// URI is the URI of a Cosmos DB account for tests, in the form that store/cosmos
// takes: that of the environment variable COSMOS_URI if it is set, else that of a
// peer which all tests of this test binary share. If there is neither, it skips
// the test, or fails it if REQUIRE_STORES contains "cosmos". The account may hold
// other data: a test must use a database of its own, and remove it.
func URI(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv("COSMOS_URI"); uri != "" {
		return uri
	}
	s, err := shared()
	if err != nil {
		unavailable(t, err)
	}
	return s.URI()
}

// Key is the key of the account at URI: that of the environment variable
// COSMOS_KEY if COSMOS_URI is set. A peer takes any, so this one, too.
func Key() string {
	if os.Getenv("COSMOS_URI") != "" {
		return os.Getenv("COSMOS_KEY")
	}
	return key
}

// shared starts the shared peer. It has no cleanup: it outlives every single
// test, sees the end of the test binary by its pipe, and then removes its data.
var shared = sync.OnceValues(func() (*Server, error) {
	data, err := os.MkdirTemp("", "cosmospeer-")
	if err != nil {
		return nil, err
	}
	s := &Server{addr: "127.0.0.1:0", data: data, log: &process.Log{}}
	if err := s.run("--remove"); err != nil {
		_ = os.RemoveAll(data)
		return nil, err
	}
	return s, nil
})

// unavailable ends a test that can't have its peer.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), "cosmos") {
		t.Fatalf("REQUIRE_STORES contains cosmos: %v", err)
	}
	t.Skipf("no Cosmos DB server: %v", err)
}
