package workerlease_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// regime draws a run from a seed, of a kind in which something shows.
type regime func(seed int64) sim.Options

// anything is a run of any kind.
func anything(seed int64) sim.Options { return sim.Random(seed) }

// change changes the options of a run's workers.
func change(o *sim.Options, worker func(int, *workerlease.Options)) {
	inner := o.Worker
	o.Worker = func(n int) workerlease.Options {
		w := inner(n)
		worker(n, &w)
		return w
	}
}

// workers are workers with a name each, and with what else is theirs.
func workers(each func(int, *workerlease.Options)) func(int) workerlease.Options {
	return func(n int) workerlease.Options {
		w := workerlease.Options{WorkerType: "sim", InstanceID: fmt.Sprint("w", n)}
		each(n, &w)
		return w
	}
}

// varied is a run of any kind but for some of its faults, and of its workers'
// options.
func varied(faults func(*sim.Faults), worker func(int, *workerlease.Options)) regime {
	return func(seed int64) sim.Options {
		o := sim.Random(seed)
		if faults != nil {
			faults(&o.Faults)
		}
		if worker != nil {
			change(&o, worker)
		}
		return o
	}
}

// calm is a run of four workers in which processes come and go, and nothing else
// is wrong.
func calm(worker func(int, *workerlease.Options)) regime {
	return func(seed int64) sim.Options {
		return sim.Options{
			Seed: seed, Workers: 4, Length: 6 * time.Hour,
			Faults: sim.Faults{Restarts: time.Minute, Latency: 30 * time.Millisecond},
			Worker: workers(worker),
		}
	}
}

// every gives the workers slots of different lengths, in turn.
func every(intervals ...time.Duration) func(int, *workerlease.Options) {
	return func(n int, w *workerlease.Options) { w.LeaseInterval = intervals[n%len(intervals)] }
}

var (
	// mixedIntervals: the workers' slots differ, as in a rolling deployment.
	mixedIntervals = varied(nil, every(time.Minute, 10*time.Second, 7*time.Minute))
	// restarts: processes come and go all the time.
	restarts = varied(func(f *sim.Faults) { f.Restarts, f.Stalls = 3*time.Minute, 0 },
		func(_ int, w *workerlease.Options) {
			w.LeaseInterval, w.Lead = 40*time.Second, 20*time.Second
			w.TieBreak, w.Priority = priority.Rotate, 0
		})
	// mixedLeads: the same, and for some claims open later than for others.
	mixedLeads = calm(func(n int, w *workerlease.Options) {
		w.LeaseInterval, w.Lead = 40*time.Second, []time.Duration{20 * time.Second, time.Second}[n%2]
		w.TieBreak = priority.Rotate
	})
	// groups: the same, with some of the workers in a group.
	groups = varied(func(f *sim.Faults) { f.Restarts, f.Stalls = 5*time.Minute, 0 },
		func(n int, w *workerlease.Options) {
			w.LeaseInterval = time.Minute
			if n < 4 {
				w.Group = "g"
			}
		})
	// mixedGroups: the slots of a group's members differ.
	mixedGroups = varied(nil, func(n int, w *workerlease.Options) {
		w.LeaseInterval = []time.Duration{10 * time.Second, 70 * time.Second}[n%2]
		w.Group = fmt.Sprint("g", n%4/2)
	})
	// twins: two workers at a time were started with one InstanceID.
	twins = varied(func(f *sim.Faults) { f.Restarts = 5 * time.Minute },
		func(n int, w *workerlease.Options) { w.InstanceID = fmt.Sprint("w", n/2) })
	// uncertain: store time is known badly, and store servers differ.
	uncertain = varied(func(f *sim.Faults) {
		f.Latency, f.Drift = 300*time.Millisecond, 0.001
		f.Skew, f.Failovers = 250*time.Millisecond, 20*time.Minute
	}, nil)
	// newerVersions: other versions write records of their own.
	newerVersions = varied(func(f *sim.Faults) { f.NewerVersions = 5 * time.Minute }, nil)
	// poisoned: the ledger has records that can't be obeyed.
	poisoned = varied(func(f *sim.Faults) { f.Poisons = 20 * time.Minute }, nil)
	// slowPoison: the same, in a store so slow that a reset comes while others claim.
	slowPoison = varied(func(f *sim.Faults) {
		f.Poisons, f.Latency, f.Restarts = 8*time.Minute, 400*time.Millisecond, 5*time.Minute
	},
		func(n int, w *workerlease.Options) {
			w.LeaseInterval, w.Priority = time.Minute, n%2
		})
	// mixedPoison: the same, and one worker's patience is shorter than another's slot.
	mixedPoison = varied(func(f *sim.Faults) { f.Poisons = 30 * time.Minute }, every(time.Minute, 35*time.Minute))
	// cutShort: workers are often cut off from the store in the middle of a claim.
	cutShort = varied(func(f *sim.Faults) {
		f.Partitions, f.BlackHole, f.LostReply = 10*time.Minute, 0.2, 0.2
	}, every(5*time.Minute))
	// overruns: user code often outlasts its lease.
	overruns = varied(func(f *sim.Faults) { f.Blocked = 0.2 }, nil)
	// wallSteps: the machines' times of day are set all the time.
	wallSteps = varied(func(f *sim.Faults) { f.WallSteps = 5 * time.Minute }, nil)
	// oldStamps: the store shows the time of up to a second ago.
	oldStamps = varied(func(f *sim.Faults) { f.StampAge, f.Skew, f.Latency = time.Second, 0, time.Millisecond }, nil)
	// edgeOfTrimming: when a slot is won, the oldest record of the newest hundred is
	// just old enough to justify trimming, and the one after it is not.
	edgeOfTrimming = varied(func(f *sim.Faults) { *f = sim.Faults{Latency: f.Latency, Late: f.Late} },
		func(_ int, w *workerlease.Options) {
			w.LeaseInterval, w.Retention = 72400*time.Millisecond, 2*time.Hour
		})
)

// jumps: the store's clock jumps, and nothing else happens. This is beyond what
// is assumed, but it is borne by workers that were there before.
func jumps(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 24 * time.Hour,
		Faults: sim.Faults{Jumps: 30 * time.Minute, JumpBy: 40 * time.Second, Latency: 20 * time.Millisecond},
	}
}

// jumpsUnderParts: the same, and leases are extended part by part.
func jumpsUnderParts(seed int64) sim.Options {
	o := jumps(seed)
	o.Faults.JumpBy = 10 * time.Minute
	o.Worker = workers(func(_ int, w *workerlease.Options) { w.FailoverWithin, w.Continuous = 20*time.Second, true })
	return o
}

// cutOff: a worker claims a slot of a day, and right then is cut off from the
// store for hours, in which others take slots of 10 s, each its key. When it is
// back, its own may be free.
func cutOff(seed int64) sim.Options {
	return cutOffFor(150*time.Minute+time.Duration(seed%60)*time.Minute, seed)
}

// expiring: the same, and the store deletes whatever is old.
func expiring(seed int64) sim.Options {
	o := brieflyCutOff(seed)
	o.Faults.TTL = time.Minute
	return o
}

// brieflyCutOff: the same, but its claim is not void when it is back.
func brieflyCutOff(seed int64) sim.Options {
	return cutOffFor(40*time.Minute+time.Duration(seed%18)*time.Minute, seed)
}

func cutOffFor(long time.Duration, seed int64) sim.Options {
	o := sim.Random(seed)
	o.Faults = sim.Faults{Latency: o.Faults.Latency, LostReply: o.Faults.LostReply, Delayed: o.Faults.Delayed}
	o.Worker = workers(func(n int, w *workerlease.Options) {
		w.LeaseInterval, w.Retention, w.Priority = 10*time.Second, 2*time.Hour, 1
		if n == 0 {
			w.LeaseInterval, w.Continuous = 24*time.Hour, true // It joins.
		}
	})
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return workerlease.NewClient(cable(l, long), c)
	}
	return o
}

var errCut = errors.New("connection reset")

// cable is a connection that breaks when the claim of a long slot is about to be
// appended, for that time.
func cable(l store.Ledger, long time.Duration) store.Ledger {
	var mu sync.Mutex
	var broken time.Time
	return &hooked{
		Ledger: l,
		beforeAppend: func(r store.Record) {
			mu.Lock()
			defer mu.Unlock()
			if broken.IsZero() && r.SlotEnd.Sub(r.SlotStart) > time.Hour {
				broken = time.Now()
			}
		},
		before: func() error {
			mu.Lock()
			defer mu.Unlock()
			if !broken.IsZero() && time.Since(broken) < long {
				return errCut
			}
			return nil
		},
	}
}

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
		Worker: workers(func(n int, w *workerlease.Options) { w.Priority, w.LeaseInterval = n, 10*time.Minute }),
	}
}
