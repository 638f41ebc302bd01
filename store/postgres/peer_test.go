package postgres

import (
	"context"
	"net/url"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel, because the suite counts goroutines.
func TestAServerThatDiesOrIsSilent(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		s := postgrespeer.Start(t, postgrespeer.Options{})
		uri := postgrespeer.Role(t, s.URI(), "CREATE ON SCHEMA public")
		u, err := url.Parse(uri)
		must(t, "Parse()", err)
		password, _ := u.User.Password()
		return storetest.PeerHarness{
			Peer:   s,
			Secret: password,
			Open:   func(ctx context.Context) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
		}
	})
}
