package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// skewRegimes: the clocks of the store's members are further apart than is assumed.
var skewRegimes = []regime{
	{"members whose clocks are apart", func(o *sim.Options, r *rand.Rand) {
		apart(o, pick(r, 10*time.Minute, 30*time.Minute), pick(r, 0, 3*time.Minute, time.Hour), r.IntN(4))
	}, idleApart, through(assumed(100 * time.Millisecond)), "works before its window", false},
}

// apart: a replica set elects another primary now and then, and processes come and go, so that many
// know one member alone. One member is 80 ms ahead, one 3 s, and one can't be asked while it isn't
// the primary.
func apart(o *sim.Options, elections, restarts time.Duration, turn int) {
	off := []time.Duration{0, 80 * time.Millisecond, 3 * time.Second, -90 * time.Millisecond}
	o.Faults.Skew, o.Faults.ClockSteps = 100*time.Millisecond, 0
	o.Faults.Off = slices.Concat(off[turn:], off[:turn])
	o.Faults.Unasked = 1 + (3-turn+4)%4
	o.Faults.Failovers, o.Faults.Restarts = elections, restarts
	eachWorker(o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.JoinMidSlot = max(w.LeaseInterval, time.Minute), true
	})
}

// idleApart: nobody has a lease for as long only as the clocks are apart, after an election for a
// slot.
func idleApart(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	interval := o.Worker(0).LeaseInterval
	// The clock of the member that can't be asked is known to within the assumed skew and a round trip.
	off := 3100*time.Millisecond + o.Faults.Skew + 2*o.Faults.Latency
	boundary := late(o, interval) + o.Worker(0).Margin + 2*off + 400*time.Millisecond
	for _, s := range without(r, o.Length) {
		most, idle := boundary, s.To-s.From
		for _, d := range r.Down {
			if d.From <= s.To && d.To+interval > s.From {
				most = interval + lead(interval) + 3*boundary + (d.To - d.From)
			}
		}
		if idle > most && o.Faults.Restarts == 0 {
			wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v, from %v on, want %v at most", idle, s.From, most))
		}
	}
	return wrong
}

// assumed takes no more than this for how far the servers' clocks are apart.
func assumed(most time.Duration) func(store.Ledger) store.Ledger {
	return func(l store.Ledger) store.Ledger {
		return &restamped{Ledger: l, change: func(s *store.Stamp) { s.Skew = min(s.Skew, most) }}
	}
}
