package mongo

import (
	"context"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	suites.Prove(t, "it kills and pauses servers")
	const secret = "canary-4711"
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := mongopeer.Start(t)
		on := func(uri string) func(ctx context.Context) (store.Ledger, error) {
			return func(ctx context.Context) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) }
		}
		return storetest.PeerHarness{
			Peer:       peer,
			Open:       on(peer.URI()),
			Secret:     secret,
			OpenSecret: on(strings.Replace(peer.URI(), "://", "://user:"+secret+"@", 1)),
			Skips:      map[string]string{"a watch*": "a standalone server has no change streams"},
		}
	})
}
