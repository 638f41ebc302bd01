package cosmospeer

import (
	"os"
	"testing"
)

// key is the account key of the peer, which takes any.
const key = "YW55IGtleSBvcGVucyB0aGUgdGVzdCBwZWVy"

// URI is the URI of a Cosmos DB account for tests, in the form that store/cosmos
// takes: that of the environment variable COSMOS_URI if it is set, else that of a
// peer which all tests of this test binary share. If there is neither, it skips
// the test, or fails it if REQUIRE_STORES contains "cosmos". The account may hold
// other data, so each test must use its own database, and remove it.
func URI(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv("COSMOS_URI"); uri != "" {
		return uri
	}
	return (&Server{shared.Server(t)}).URI()
}

// Key is the key of the account at URI: that of the environment variable
// COSMOS_KEY if COSMOS_URI is set. A peer accepts any key.
func Key() string {
	if os.Getenv("COSMOS_URI") != "" {
		return os.Getenv("COSMOS_KEY")
	}
	return key
}

// shared is the peer that all tests share.
var shared = kindWith(nil).Share()
