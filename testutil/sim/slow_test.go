package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// The same as TestNoTwoHoldersWorkAtOnce, on stores that take up to a lead to answer.
func TestNoTwoHoldersWorkAtOnceOnASlowStore(t *testing.T) {
	skipUnderRace(t)
	sum, all := sharded(t, eighth(t), sim.RandomSlow, func(sim.Options, *sim.Result, *tally) {})
	if !all {
		return
	}
	t.Logf("%d seeds, %.0f hours of 8 workers, %d leases, %d violations; what had to happen:\n%v",
		sum.Seeds, sum.Hours, sum.Leases, len(sum.Violations), sum.Demands)
	if sum.Leases < sum.Seeds*10 {
		t.Errorf("%d leases in %d runs: too little went on", sum.Leases, sum.Seeds)
	}
}

// Hosts are up to a quarter of a lead away. The highest priority has its slots all the same, and
// workers of one priority take turns as if they were near.
func TestTheOrderOfPrioritiesHoldsHoweverFarTheStoreIs(t *testing.T) {
	skipUnderRace(t)
	each(t, 4, func(t *testing.T, seed int64, interval time.Duration) {
		o := quiet(seed, interval)
		o.Faults = sim.Faults{Latency: lead(interval) / 250, Distance: lead(interval) / 4}
		r := sim.Run(t, o)
		r.Check(t)
		below := 0
		for _, l := range r.Leases {
			if l.Worker > 1 {
				below++
			}
		}
		if slots := int((o.Length - time.Minute) / interval); len(r.Leases) < slots-3 || below*100 > len(r.Leases) || r.Inversions*100 > len(r.Leases) {
			t.Errorf("%d leases of %d slots, %d of them went to a lower priority, and %d inversions; want 1 in 100 at most", len(r.Leases), slots, below, r.Inversions)
		}
	})
}

// A store that takes half a lead for each way costs hardly a slot.
func TestSlotsAreHadWhenCallsTakeALead(t *testing.T) {
	skipUnderRace(t)
	each(t, 3, func(t *testing.T, seed int64, interval time.Duration) {
		o := quiet(seed, interval)
		o.Faults = sim.Faults{Latency: lead(interval) / 2}
		change := o.Worker
		o.Worker = func(worker int) workerlease.Options {
			w := change(worker)
			w.TieBreak = priority.TieBreak(worker % 3)
			return w
		}
		r := sim.Run(t, o)
		r.Check(t)
		if slots := int((o.Length - time.Minute) / interval); len(r.Leases) < slots*97/100 {
			t.Errorf("%d leases of %d slots", len(r.Leases), slots)
		}
	})
}

// A call that its caller doesn't wait for ends after the run.
func TestARunEndsAlthoughATaskHasCallsUnderWay(t *testing.T) {
	skipUnderRace(t)
	for seed := range int64(5) {
		r := sim.Run(t, sim.Options{
			Seed: seed, Faults: sim.Faults{Latency: 10 * time.Second, Restarts: 5 * time.Minute}, Task: sim.DefaultTask,
			Worker: func(n int) workerlease.Options {
				return workerlease.Options{WorkerType: "sim", InstanceID: fmt.Sprint("w", n), LeaseInterval: time.Minute, Continuous: true}
			},
		})
		r.Check(t)
	}
}
