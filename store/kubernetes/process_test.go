package kubernetes

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, at string) (store.Ledger, error) { return Open(ctx, Options{URI: at}) })
	m.Run()
}

func TestOfSeveralProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	storetest.ProcessRace{At: uri(s.namespace, s.kubeconfig, "worker"), Processes: 4, Goroutines: 3, Rounds: 50}.Run(t)
}
