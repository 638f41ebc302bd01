package s3

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The server keeps objects in files, which the system keeps when it is killed.
func TestTheLedgerOutlivesItsServer(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := s3peer.Start(t)
		o := Options{URI: uriOf(peer.Endpoint(), newBucket()+"/jobs"), Getenv: environment(s3peer.ID)}
		return storetest.PeerHarness{
			Peer:   peer,
			Open:   func(ctx context.Context) (store.Ledger, error) { return Open(ctx, o) },
			Secret: s3peer.Secret,
			Skips:  map[string]string{"a watch of*": "the store gives no hints"},
		}
	})
}
