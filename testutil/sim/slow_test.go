package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// The same as TestNoTwoHoldersWorkAtOnce, on stores that take up to a lead to answer.
func TestNoTwoHoldersWorkAtOnceOnASlowStore(t *testing.T) {
	suites.Prove(t, "it simulates for long")
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

// If the holder crashes, another worker works within FailoverWithin, plus its own turn and the
// uncertainty of the time; towards the end of a slot, plus a lead.
func TestAfterACrashAStandbyTakesOverWithinTheBound(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	seeds, crashes := part(t, 6), 0
	var parts []float64 // of FailoverWithin, until somebody took over
	for _, interval := range intervals {
		for seed := range seeds {
			d := interval / time.Duration(3+seed%4)
			o := quiet(seed, interval)
			o.Faults.Latency, o.Faults.Skew, o.Faults.ClockSteps = 5*time.Millisecond, 5*time.Millisecond, 0
			o.Faults.Restarts = 20 * time.Minute
			inner := o.Worker
			o.Worker = func(worker int) workerlease.Options {
				w := inner(worker)
				w.FailoverWithin, w.Continuous = d, seed%2 == 0
				return w
			}
			r := sim.Run(t, o)
			r.Check(t)
			lead := min(lead(interval), d/2)
			// The lowest priority that is there is 2, and has its turn by the end of the
			// third turn.
			turn := 3*lead/9 + late(o, interval)
			for i, l := range r.Leases {
				if !l.Crashed || l.Ended > o.Length-2*interval {
					continue
				}
				bound := l.Ended + d + turn
				// The rest of its window may reach into the lead of the next slot, which doesn't begin before
				// its boundary; or it may have claimed that slot already.
				ending := l.Ended%interval > interval-lead-d-turn
				if ending {
					bound += lead
				}
				next := slices.IndexFunc(r.Leases[i+1:], func(n *sim.Lease) bool { return n.Began > l.Ended })
				if next < 0 {
					t.Errorf("seed %d: nobody takes over from %v", seed, l)
					continue
				}
				crashes++
				if !ending {
					parts = append(parts, float64(r.Leases[i+1+next].Began-l.Ended)/float64(d))
				}
				if n := r.Leases[i+1+next]; n.Began > bound {
					t.Errorf("seed %d, d = %v: %v crashed, and %v takes over %v later, want within %v", seed, d, l, n, n.Began-l.Ended, bound-l.Ended)
				}
			}
		}
	}
	slices.Sort(parts)
	t.Logf("%d holders crashed; of %d that did so inside a slot, the median was followed in %.2f × FailoverWithin, 99 %% in %.2f ×, all in %.2f ×",
		crashes, len(parts), parts[len(parts)/2], parts[len(parts)*99/100], parts[len(parts)-1])
	if least := 8 * int(seeds); crashes < least {
		t.Errorf("%d holders crashed, want at least %d", crashes, least)
	}
}

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
	restamped(func(s *store.Stamp) { s.Skew = 103 * ms })(&o)
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
