package cosmos

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("canary-4711")) // as a key: the peer takes any
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := cosmospeer.Start(t, cosmospeer.Options{})
		return storetest.PeerHarness{
			Peer: peer,
			Open: func(ctx context.Context) (store.Ledger, error) {
				return Open(ctx, Options{URI: peer.URI(), Key: secret})
			},
			Secret: secret,
			Skips:  map[string]string{"a watch*": "the store gives no hints"},
		}
	})
}
