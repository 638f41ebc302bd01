package sim_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// machineRegimes: all workers are on one machine, by whose clock the store goes.
var machineRegimes = []regime{
	{"one machine", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		o.Faults.Restarts = pick(r, 0, time.Hour)
	}, gapIsTheMargin, drifting, "works before its window", false},
	{"one machine, and lone wrong stamps", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		o.Faults.WrongStamps, o.Faults.WrongBy = pick(r, 20*time.Minute, time.Hour), pick(r, time.Minute, 2*time.Hour)
		if r.IntN(2) == 0 {
			through(silentAtTimes)(o)
		}
	}, afterWrongStamps, through(stubborn), "nobody had a slot", false},
	{"one machine, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		f := &o.Faults
		f.Latency, f.StampAge = pick(r, 5*time.Millisecond, 300*time.Millisecond), pick(r, 0, 0, time.Second)
		f.Restarts, f.Stalls, f.Outages = 20*time.Minute, pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver = 0.02, 0.1, 0.1, 0.02, 0.01
		join, parts := r.IntN(2) == 0, pick(r, 0, 0, time.Second)
		eachWorker(o, func(n int, w *workerlease.Options) { w.JoinMidSlot, w.FailoverWithin = join && n%2 == 0, parts })
		if r.IntN(2) == 0 {
			through(silentAtTimes)(o)
		}
	}, nothingMore, drifting, "works before its window", false},
}

// onOneMachine: there is one clock, and stamps say so.
func onOneMachine(o *sim.Options) {
	o.OneMachine = true
	f := &o.Faults
	f.Skew, f.Drift, f.ClockSteps, f.NoBoottime = 0, 0, 0, false
	eachWorker(o, func(_ int, w *workerlease.Options) { w.Margin = 20 * time.Millisecond })
}

// drifting: the workers are on machines of their own.
func drifting(o *sim.Options) {
	o.Faults.Drift, o.Faults.Latency, o.Faults.StampAge = 0.001, time.Millisecond, 0
	eachWorker(o, func(_ int, w *workerlease.Options) { w.LeaseInterval = 5 * time.Minute })
}

// silentAtTimes leaves out of every third stamp whose clock it is of.
func silentAtTimes(l store.Ledger) store.Ledger {
	var n atomic.Int64
	return &restamped{Ledger: l, change: func(s *store.Stamp) {
		if n.Add(1)%3 == 0 {
			s.Boottime = 0
		}
	}}
}

// gapIsTheMargin demands that between two slots nobody works for the margin, and for how exact stamps
// and timers are, but no longer. A process that ends leaves its slot to nobody.
func gapIsTheMargin(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	margin := o.Worker(0).Margin
	for i, l := range r.Leases {
		if i == 0 {
			continue
		}
		before := r.Leases[i-1]
		gap, most := l.Began-before.Ended, margin+5*time.Millisecond
		if before.Why == workerlease.WindowEnded && l.Start == before.End && gap > most {
			wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v before %v, want %v at most", gap, l, most))
		}
	}
	return wrong
}
