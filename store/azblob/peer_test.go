package azblob

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The server acknowledges what it has saved.
func TestTheLedgerOutlivesItsServer(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := azuritepeer.Start(t)
		o := Options{URI: uriOf(peer.Endpoint(), newContainer()+"/jobs"), Getenv: environment("AZURE_STORAGE_KEY", azuritepeer.Key)}
		return storetest.PeerHarness{
			Peer:   peer,
			Open:   func(ctx context.Context) (store.Ledger, error) { return Open(ctx, o) },
			Secret: azuritepeer.Key,
			Skips:  map[string]string{"a watch of*": "the store gives no hints"},
		}
	})
}
