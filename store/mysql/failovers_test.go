package mysql

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/failovers"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
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
				// It waits for nobody, not even with what it applies.
				execute(t, p.replica.DSN(), "SET GLOBAL rpl_semi_sync_master_enabled = 0")
				applied(t, p.replica)
				promote(t, p.replica)
			},
		}
	})
}

// applied waits until a replica has applied all that it has acknowledged: that is in its relay log, which RESET SLAVE discards.
func applied(t *testing.T, s *mysqlpeer.Server) {
	t.Helper()
	execute(t, s.DSN(), "STOP SLAVE IO_THREAD")
	suites.Eventually(t, "the replica has applied its relay log", func() bool {
		return strings.Contains(mysqlpeer.Exec(t, s.DSN(), "SHOW SLAVE STATUS"), "has read all relay log")
	})
}
