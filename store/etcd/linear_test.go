package etcd

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/restarts"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
)

// SLOTLEASE_LINEAR_OPS sets the number of operations, of which a fortieth is checked here, as on
// the other servers in internal/linear.
func TestTheLedgerIsLinearizableWhileItsServerIsKilled(t *testing.T) {
	t.Parallel()
	all, err := workload.Operations(36_000)
	must(t, "Operations()", err)
	first, least := 0, 3
	if race.Enabled || testing.Short() {
		first, least, all = 2, 1, all/10
	}
	server := etcdpeer.Start(t, etcdpeer.Options{})
	var ledgers []store.Ledger
	for range 6 {
		ledgers = append(ledgers, opened(t, Options{URI: server.URI()}))
	}
	must(t, "Init()", ledgers[0].Init(t.Context()))
	var sum linear.Result
	kills, after := 0, 0
	for i := first; sum.Searched < all/40 || i < first+least; i++ {
		h, n := restarts.Round(t.Context(), ledgers, i, inOrder(i), server)
		result, err := h.Check(time.Minute)
		if err != nil {
			t.Fatalf("round %d: Check() = %v: %v", i, err, result.Violations)
		}
		sum.Add(result)
		if after += n; restarts.Disturbed(i) {
			kills++
		}
	}
	t.Logf("%d operations checked, %d of unknown outcome, %d conflicts, %d kills, %d answers after them", sum.Searched, sum.Unknown, sum.Conflicts, kills, after)
	if sum.Unknown == 0 || sum.Conflicts == 0 || after == 0 {
		t.Errorf("%d unknown outcomes, %d conflicts, %d answers after %d kills, want some of each", sum.Unknown, sum.Conflicts, after, kills)
	}
}

// inOrder is what the clients do in a round: they append in order, since a tail is made of several lists while somebody
// appends all the time.
func inOrder(i int) workload.Plan {
	p := restarts.Plan(i)
	p.InOrder = true
	return p
}
