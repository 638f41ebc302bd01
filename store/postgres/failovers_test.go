package postgres

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/failovers"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// Primaries die while workers work, and their standbys take over: one that commits wait for, and one that may lack the newest.
func TestFailovers(t *testing.T) {
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		for way, pooled := range map[string]bool{"direct": false, "pooled": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				failovers.Run(t, func(t *testing.T) failovers.World {
					t.Helper()
					p := startPair(t, synchronous)
					uri, moved := p.both(), func() {}
					if pooled {
						addr, to := failovers.Switch(t, p.primary.Addr())
						uri = postgrespeer.Pooler(t, strings.Replace(p.primary.URI(), p.primary.Addr(), addr, 1), "transaction")
						moved = func() { to(p.standby.Addr()) }
					}
					initialised(t, Options{URI: uri})
					return failovers.World{
						Loses: !synchronous,
						Open:  func() store.Ledger { return opened(t, Options{URI: uri, MaxConns: 4}) },
						Fail: func(r *rand.Rand) {
							if r.IntN(2) == 0 { // What is committed from here on, the standby lacks.
								p.standby.Pause()
								execute(t, p.primary.URI(), `SELECT pg_terminate_backend(pid) FROM pg_stat_replication`) // or its system would receive it
								failovers.Sleep(r)
							}
							p.primary.Kill()
							p.standby.Resume()
							postgrespeer.Exec(t, p.standby.URI(), `SELECT pg_promote()`, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
							moved()
						},
					}
				})
			})
		}
	}
}
