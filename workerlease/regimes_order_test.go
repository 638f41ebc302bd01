package workerlease_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// ranked is a calm run of six workers of four priorities.
var ranked = crowd(func(n int, w *workerlease.Options) { w.Priority = n % 4 })

// equals is the same with one priority, so that the tie-break decides.
func equals(tie priority.TieBreak) regime {
	return crowd(func(_ int, w *workerlease.Options) { w.Priority, w.TieBreak = 1, tie })
}

// together: the same, and most of the workers are a group, whose members join its lease
// in slots long enough to start in.
var together = crowd(func(n int, w *workerlease.Options) {
	w.LeaseInterval = 10 * time.Minute
	if n < 4 {
		w.Group = "g"
	}
})

// crowd is a calm run of six workers, with slots of a minute that are lost only to
// processes that come and go.
func crowd(worker func(int, *workerlease.Options)) regime {
	inner := calm(func(n int, w *workerlease.Options) {
		w.LeaseInterval = time.Minute
		worker(n, w)
	})
	return func(seed int64) sim.Options {
		o := inner(seed)
		o.Workers, o.Length, o.Faults.Restarts = 6, 3*time.Hour, 5*time.Minute
		return o
	}
}

// strayed: workers live on, and now and then something lies in the ledger that can't be
// obeyed.
func strayed(seed int64) sim.Options {
	o := shortOutages(seed)
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond, Poisons: 6 * time.Hour}
	return o
}

// shortOutages: workers live on, and the store is down at times: at some boundaries, and
// not for as long as a slot.
func shortOutages(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 12 * time.Hour,
		Faults: sim.Faults{Latency: 30 * time.Millisecond, Outages: 15 * time.Minute},
		Worker: func(n int) workerlease.Options {
			return workerlease.Options{
				WorkerType: "sim", InstanceID: fmt.Sprint("w", n), Priority: n, LeaseInterval: 10 * time.Minute,
			}
		},
	}
}
