package workerlease_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// poisonVariants are hasty with what can't be obeyed.
var poisonVariants = []variant{
	// w0 has a slot of a minute, by a grant that w1 can't read. w1, with slots of 10 s,
	// watches it for as long, and starts anew.
	{name: "poison is watched for a slot", rule: "Patience", regime: unreadable, instead: time.Duration(0)},
	// w0 has a slot of ten minutes, by a grant that w1 can read, but not obey. w1 watches
	// it for five minutes, and starts anew.
	{
		name: "the window of poison doesn't count", rule: "Span", regime: unobeyed,
		instead: func([]store.Record) time.Duration { return 0 }, seldom: true,
	},
	// w0 has a slot of half an hour, by a grant that w1 can't obey, and something lands on
	// top of it that nobody can read. w1 watches that for five minutes, and starts anew.
	{
		name: "the window of poison under poison doesn't count", rule: "Span", regime: buried,
		instead: func(poison []store.Record) time.Duration { return standard.Span(poison[:1]) }, as: "changes the term",
	},
	// Something valid lands on w0's grant, and ends before it. w1 claims what follows on that.
	{name: "what is valid alone is obeyed", rule: "Contradicts", regime: contradicted, instead: obeyed},
	// A reset lands on w0's grant, and says that it was written a day ago, when that was far ahead.
	{name: "a reset is as old as it says", rule: "Dated", regime: contradicted, instead: func(reset, _ store.Record) bool { return !reset.ReadAt.IsZero() }},
	// Poison comes into the ledger above a free key. w0 supersedes it, and w1 claims the
	// next slot above that. w2's read is stale and shows what is below: it claims the same
	// slot, on the free key.
	{name: "poison above a free key is superseded, too", rule: "Leads", regime: holed, instead: func(store.Record, store.Record) bool { return true }},
}

// obeyed is every record that is valid alone.
func obeyed(store.Record, store.Record) error { return nil }

// contradicted is a run in which valid records are planted that no worker can have appended.
var contradicted = varied(func(f *sim.Faults) { f.Poisons, f.Foreign = 0, time.Hour }, nil)

// holed is a run in which poison is planted above free keys, and some reads are stale: most
// aren't, as somebody would have taken the free key before the poison is superseded.
func holed(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = 12 * time.Hour
	o.Faults = sim.Faults{Latency: o.Faults.Latency, Poisons: 90 * time.Minute, Holes: 1, Stale: 0.04}
	o.Worker = workers(func(n int, w *workerlease.Options) { w.LeaseInterval, w.Priority = 5*time.Minute, n%2 })
	return o
}

// unreadable is a run in which workers can't read some of each other's grants. None is
// for longer than a worker is patient.
func unreadable(seed int64) sim.Options {
	return foreign(seed, func(r *store.Record) {
		*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "written in another way"}
	}, time.Minute, 10*time.Second)
}

// unobeyed is a run in which workers can't obey some of each other's grants, but see how
// long they are.
func unobeyed(seed int64) sim.Options {
	return foreign(seed, func(r *store.Record) {
		r.Token += (365 * 24 * time.Hour).Milliseconds()
	}, 10*time.Minute, 10*time.Second)
}

// buried is the same, where something that can't be read at all lands on top at times.
func buried(seed int64) sim.Options {
	o := foreign(seed, func(r *store.Record) {
		r.Token += (365 * 24 * time.Hour).Milliseconds()
	}, 30*time.Minute, 10*time.Second)
	o.Faults = sim.Faults{Latency: o.Faults.Latency, Poisons: 20 * time.Minute}
	o.Length = 6 * time.Hour
	return o
}

func foreign(seed int64, show func(*store.Record), intervals ...time.Duration) sim.Options {
	o := varied(func(f *sim.Faults) { f.Poisons = 0 }, func(n int, w *workerlease.Options) {
		every(intervals...)(n, w)
		w.Group, w.InstanceID = "", fmt.Sprint("w", n)
	})(seed)
	o.Length = 2 * time.Hour
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return workerlease.NewClient(stranger(l, 8, show), c)
	}
	return o
}

// stranger shows its user some of the grants that others wrote in another way: those whose
// Seq is one less than a multiple of every.
func stranger(l store.Ledger, every int64, show func(*store.Record)) store.Ledger {
	var mu sync.Mutex
	own := map[string]bool{} // claims
	return &hooked{
		Ledger: l,
		beforeAppend: func(r store.Record) {
			mu.Lock()
			defer mu.Unlock()
			own[r.Claim] = true
		},
		record: func(r *store.Record) {
			mu.Lock()
			defer mu.Unlock()
			if r.Seq%every == every-1 && r.Kind == store.KindGrant && !own[r.Claim] {
				show(r)
			}
		},
	}
}
