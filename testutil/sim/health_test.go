package sim_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// A user's wrapper of a ledger may fail, here for half of each ten minutes, unknown to the world.
// That keeps a worker from claiming, and is no fault of the engine.
func TestNothingIsDemandedOfAProcessWhoseCallsFail(t *testing.T) {
	failing := 0
	unsteady := func(c faultstore.Call) (f faultstore.Fault) {
		if (c.Op == faultstore.OpAppend || c.Op == faultstore.OpTail) && time.Now().Minute()%10 < 5 {
			f = faultstore.Failure()
		}
		return f
	}
	for seed := range fewer(4) {
		o := quiet(seed, time.Minute)
		o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(faultstore.New(l, faultstore.Options{Plan: unsteady}), c)
		}
		r := sim.Run(t, o)
		r.Check(t)
		failing += r.Missed
		if d := r.Demands; d.Boundaries < 50 || d.Turns < 50 {
			t.Errorf("seed %d: while nothing failed, too little was looked at:\n%v", seed, d)
		}
	}
	if failing == 0 {
		t.Error("no slot was missed: nothing failed")
	}
}
