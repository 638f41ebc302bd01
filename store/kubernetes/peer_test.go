package kubernetes

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// restarted is a peer for the suite.
type restarted struct {
	*kubepeer.Server
	t testing.TB
}

func (r restarted) Restart() { r.Server.Restart(r.t) }

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := kubepeer.Start(t)
		s := fresh(t, peer.Kubeconfig())
		config := &rest.Config{Host: s.admin.base, BearerToken: canary, TLSClientConfig: rest.TLSClientConfig{CAFile: peer.Data() + "/apiserver.crt"}}
		return storetest.PeerHarness{
			Peer: restarted{peer, t},
			Open: func(ctx context.Context) (store.Ledger, error) {
				return Open(ctx, Options{URI: uri(s.namespace, s.kubeconfig, "worker")})
			},
			Secret: canary,
			OpenSecret: func(ctx context.Context) (store.Ledger, error) {
				return Open(ctx, Options{URI: scheme + s.namespace, Config: config})
			},
		}
	})
}
