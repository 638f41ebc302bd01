package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel: the suite counts goroutines.
func TestALedgerOutlivesItsServer(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		peer := etcdpeer.Start(t, etcdpeer.Options{})
		on := func(o Options) func(ctx context.Context) (store.Ledger, error) {
			return func(ctx context.Context) (store.Ledger, error) { return Open(ctx, o) }
		}
		return storetest.PeerHarness{
			Peer: peer, Open: on(Options{URI: peer.URI()}),
			Secret: canary, OpenSecret: on(Options{URI: peer.URI(), User: "worker", Password: canary}),
		}
	})
}

func TestTheFailoverFloorHasTheSkew(t *testing.T) {
	t.Parallel()
	for want, o := range map[time.Duration]Options{5200 * time.Millisecond: {URI: "etcd://h"}, 3200 * time.Millisecond: {URI: "etcd://h", OneMember: true}, 11200 * time.Millisecond: {URI: "etcd://h?serverSkew=1s"}} {
		if got := opened(t, o).FailoverFloor(); got != want {
			t.Errorf("FailoverFloor() of %+v = %v, want %v", o, got, want)
		}
	}
}

func TestTheStoreSaysWhatSurvives(t *testing.T) {
	t.Parallel()
	one, several := opened(t, Options{URI: "etcd://h", OneMember: true}).Durability(), opened(t, Options{URI: "etcd://h"}).Durability()
	if !strings.Contains(one.Failover, "one member") || !strings.Contains(several.Crash, "majority") || !strings.Contains(several.Power, "--unsafe-no-fsync") {
		t.Errorf("Durability() = %+v and %+v", one, several)
	}
}
