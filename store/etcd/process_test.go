package etcd

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for servers that don't answer
	m.Run()
}

func TestOfSeveralProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	storetest.ProcessRace{At: fresh(etcdpeer.Shared(t)), Processes: 4, Goroutines: 3, Rounds: 100}.Run(t)
}
