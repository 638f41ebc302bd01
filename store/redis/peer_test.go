package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	const secret = "canary-4711"
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := redispeer.Start(t, redispeer.Options{Flags: []string{"--requirepass", secret}})
		open := func(ctx context.Context) (store.Ledger, error) {
			return store.Open(ctx, strings.Replace(peer.URI(), "://", "://:"+secret+"@", 1), store.OpenOptions{})
		}
		return storetest.PeerHarness{Peer: peer, Open: open, Secret: secret}
	})
}
