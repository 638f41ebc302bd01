package mongopeer

import (
	"os"
	"testing"
)

// URI is the URI of a MongoDB server for tests: that of the environment variable
// MONGODB_URI if it is set, else that of a peer which all tests of this test
// binary share. If there is neither, it skips the test, or fails it if
// REQUIRE_STORES contains "mongo". The server may hold other data, so each test must
// use its own database.
func URI(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		return uri
	}
	return (&Server{shared.Server(t)}).URI()
}

// shared is the peer that all tests share.
var shared = kind.Share()
