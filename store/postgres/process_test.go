package postgres

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for servers that don't answer
	m.Run()
}

func TestOfProcessesThatAppendOneKeyExactlyOneWins(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t) + "&table=" + newTable()
	initialised(t, Options{URI: uri})
	rounds := 100
	if race.Enabled {
		rounds = 20
	}
	storetest.ProcessRace{At: uri, Processes: 4, Goroutines: 4, Rounds: rounds}.Run(t)
}
