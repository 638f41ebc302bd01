package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// unsteady is a connection that fails for half of each ten minutes, unknown to the world.
type unsteady struct{ store.Ledger }

var errUnsteady = errors.New("unsteady")

func (u unsteady) fails() bool { return time.Now().Minute()%10 < 5 }

func (u unsteady) Append(ctx context.Context, r store.Record) error {
	if u.fails() {
		return errUnsteady
	}
	return u.Ledger.Append(ctx, r)
}

func (u unsteady) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if u.fails() {
		return nil, store.Stamp{}, errUnsteady
	}
	return u.Ledger.Tail(ctx, workerType, limit)
}

// A user's wrapper of a ledger may fail. That keeps a worker from claiming, and is no fault of
// the engine.
func TestNothingIsDemandedOfAProcessWhoseCallsFail(t *testing.T) {
	failing := 0
	for seed := range fewer(4) {
		o := quiet(seed, time.Minute)
		o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(unsteady{l}, c)
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

// In a world without faults, every demand applies at each boundary but the first ones.
func TestInAQuietWorldEachBoundaryIsLookedAt(t *testing.T) {
	o := quiet(1, time.Minute)
	r := sim.Run(t, o)
	r.Check(t)
	slots := int(o.Length/time.Minute) - 5
	if d := r.Demands; d.Boundaries < 2*slots || d.Turns < slots || d.Entries < slots {
		t.Errorf("in %d slots of %d workers, this was looked at:\n%v", slots, o.Workers, d)
	}
}
