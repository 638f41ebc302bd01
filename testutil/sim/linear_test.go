package sim_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// The simulated ledger is linearizable for its workers: the world lies about outcomes only
// where a store may. Stale reads are left out, since linearizability excludes them.
func TestTheSimulatedLedgerIsLinearizable(t *testing.T) {
	suites.Prove(t, "it searches for long")
	skipUnderRace(t)
	sum := linear.Result{}
	for seed := range int64(20) {
		o := sim.Random(seed)
		o.Length = 2 * time.Hour
		f := &o.Faults
		f.Stale, f.Poisons, f.NewerVersions, f.HugeSeqs, f.Foreign = 0, 0, 0, 0, 0
		h := linear.NewHistory()
		var clients atomic.Int64
		o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(h.Client(fmt.Sprint("p", clients.Add(1)), l), c)
		}
		sim.Run(t, o).Check(t)
		r, err := h.Check(time.Minute)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		sum.Add(r)
	}
	t.Logf("%+v", sum)
	if sum.Operations < 1000 {
		t.Errorf("%d operations: nothing went on", sum.Operations)
	}
	save(t, figures.Proof{
		Name: "linearizability-simulator", Command: "SLOTLEASE_SUITES=all go test ./testutil/sim -run Linearizable -v",
		Figures: []figures.Figure{
			{What: "operations", Value: fmt.Sprint(sum.Operations)},
			{What: "of unknown outcome", Value: fmt.Sprint(sum.Unknown)},
			{What: "illegal", Value: fmt.Sprint(sum.Illegal)},
			{What: "undecided", Value: fmt.Sprint(sum.Undecided)},
		},
	})
}
