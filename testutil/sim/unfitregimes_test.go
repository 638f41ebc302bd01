package sim_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// unfitRegimes: workers are not eligible at times, or make no progress. The world checks that they claim
// nothing then, and step down in time, and that others follow.
var unfitRegimes = []regime{
	{"workers that are not eligible", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
	}, nothingMore, careless, "has not been eligible", false},
	{"workers that are not eligible, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver = 0.02, 0.1, 0.1, 0.02, 0.005
		f.Skew, f.Failovers, f.Blocked, f.Panicked = 100*time.Millisecond, pick(r, 0, 20*time.Minute), 0.02, 0.02
	}, nothingMore, careless, "has not been eligible", false},
}

// unfit draws how often workers are ill, and how they lead.
func unfit(o *sim.Options, r *rand.Rand) {
	f := &o.Faults
	f.Illnesses, f.BadChecks, f.Stuck = pick(r, 2*time.Minute, 15*time.Minute, time.Hour), pick(r, 0, 0.02), pick(r, 0, 0.2)
	o.Hints = r.IntN(2) == 0
	kind, parts, stuck := r.IntN(4), time.Duration(2+r.IntN(4)), f.Stuck > 0
	eachWorker(o, func(_ int, w *workerlease.Options) {
		w.Continuous = kind%2 == 1
		if kind > 1 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
		if stuck {
			w.ProgressWithin = w.LeaseInterval / 4
		}
	})
}

// nothingMore is demanded than each world demands.
func nothingMore(sim.Options, *sim.Result, *tally) []string { return nil }

// careless workers take themselves for well.
func careless(o *sim.Options) {
	eachWorker(o, func(_ int, w *workerlease.Options) { w.Eligible = func(context.Context) error { return nil } })
}
