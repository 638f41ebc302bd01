package redis

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/failovers"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
)

// Primaries die while workers work, and a sentinel makes their replicas primaries: those that appends wait for, and others.
func TestFailovers(t *testing.T) {
	for name, query := range map[string]string{"waits for the replica": "?replicas=1", "asynchronous": ""} {
		t.Run(name, func(t *testing.T) {
			failovers.Run(t, func(t *testing.T) failovers.World {
				t.Helper()
				primary, replica := pair(t)
				sentinel := redispeer.StartSentinel(t, "leases", primary)
				await(t, "that the sentinel knows the replica", func() bool {
					return strings.Contains(do(t, raw(t, sentinel.URI()), "INFO", "sentinel"), "slaves=1")
				})
				uri := fmt.Sprintf("redis+sentinel://%s/leases/0%s", sentinel.Addr(), query)
				return failovers.World{
					Loses: query == "",
					Open:  func() store.Ledger { return open(t, uri) },
					Fail: func(r *rand.Rand) {
						if r.IntN(2) == 0 { // What is appended from here on, the replica lacks.
							replica.Pause()
							do(t, raw(t, primary.URI()), "CLIENT", "KILL", "TYPE", "replica") // or its system would receive it
							failovers.Sleep(r)
						}
						primary.Kill()
						replica.Resume()
						await(t, "that the sentinel names the new primary", func() bool {
							addr, err := raw(t, sentinel.URI()).Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "leases").StringSlice()
							return err == nil && net.JoinHostPort(addr[0], addr[1]) == replica.Addr()
						})
						primary.Restart() // It is made the replica.
					},
				}
			})
		})
	}
}
