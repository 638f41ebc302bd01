package mysql

import (
	"math/rand/v2"
	"testing"

	"github.com/slotlease/slotlease/internal/failovers"
	"github.com/slotlease/slotlease/store"
)

// Primaries die while workers work, and their semi-synchronous replicas take over.
func TestFailovers(t *testing.T) {
	failovers.Run(t, func(t *testing.T) failovers.World {
		t.Helper()
		p := startPair(t, semiSynchronous...)
		awaits(t, p.primary.DSN(), "SELECT VARIABLE_VALUE FROM information_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_master_clients'", "1")
		initialised(t, Options{URI: p.both()})
		return failovers.World{
			Open: func() store.Ledger { return opened(t, Options{URI: p.both(), MaxConns: 4}) },
			Fail: func(r *rand.Rand) {
				if r.IntN(2) == 0 { // What is appended from here on waits for the replica.
					p.replica.Pause()
					failovers.Sleep(r)
				}
				p.primary.Kill()
				p.replica.Resume()
				execute(t, p.replica.DSN(), "SET GLOBAL rpl_semi_sync_master_enabled = 0") // There is nobody to wait for.
				promote(t, p.replica)
			},
		}
	})
}
