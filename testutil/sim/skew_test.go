package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// boundary is the median of the stretches in which nobody has a lease, from one slot to the next,
// less the margin.
func boundary(t *testing.T, o sim.Options) time.Duration {
	t.Helper()
	r := sim.Run(t, o)
	r.Check(t)
	var idle []time.Duration
	for _, s := range without(r, o.Length-time.Minute) {
		idle = append(idle, s.To-s.From)
	}
	if len(idle) < 100 {
		t.Fatalf("%d boundaries, want 100 at least", len(idle))
	}
	slices.Sort(idle)
	return idle[len(idle)/2] - o.Worker(0).Margin
}

// members are two workers that take 2 s slots in turn, in a replica set of three that is 1 ms away.
func members(off ...time.Duration) sim.Options {
	return sim.Options{
		Seed: 1, Workers: 2, Length: 20 * time.Minute,
		Faults: sim.Faults{Latency: 500 * time.Microsecond, Skew: 100 * time.Millisecond, Off: off},
		Worker: func(n int) workerlease.Options {
			return workerlease.Options{
				WorkerType: "s", InstanceID: []string{"a", "b"}[n], LeaseInterval: 2 * time.Second, Margin: 10 * time.Millisecond,
			}
		},
	}
}

// What is measured of the members' clocks is what a boundary costs.
func TestABoundaryCostsWhatTheClocksAreApart(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	const ms = time.Millisecond
	measured := boundary(t, members(0, ms, -ms))
	if measured > 20*ms {
		t.Errorf("a boundary costs %v and the margin where clocks agree within 2 ms, want 20ms at most", measured)
	}
	o := members(0, ms, -ms)
	through(func(l store.Ledger) store.Ledger {
		return &restamped{Ledger: l, change: func(s *store.Stamp) { s.Skew = 103 * ms }}
	})(&o)
	before := boundary(t, o)
	if before < 200*ms {
		t.Errorf("a boundary costs %v and the margin where 100 ms are assumed, want 200ms at least: else this shows nothing", before)
	}
	off := members(0, ms, -ms, 80*ms)
	if apart := boundary(t, off); apart < 160*ms || apart > 190*ms {
		t.Errorf("a boundary costs %v and the margin where one clock is 80 ms ahead, want about 170ms", apart)
	}
	t.Logf("a boundary costs %v and the margin where clocks agree within 2 ms, and %v where 100 ms are assumed", measured, before)
}
