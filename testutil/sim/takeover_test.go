package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

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
				w.FailoverWithin, w.Continuous, w.JoinMidSlot = d, seed%2 == 0, true
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
