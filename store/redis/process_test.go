package redis

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for servers that don't answer
	m.Run()
}

func TestProcessesRaceForKeys(t *testing.T) {
	t.Parallel()
	storetest.ProcessRace{At: shared(t), Processes: 4, Goroutines: 4, Rounds: 200}.Run(t)
}
