package workerlease_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// poisonVariants are hasty with what can't be obeyed.
var poisonVariants = []variant{
	// w0 has a slot of a minute, by a grant that w1 can't read. w1, with slots of 10 s,
	// watches it for as long, and starts anew. The world doesn't know what w1 can't read, and may miss a claim in the meantime.
	{name: "poison is watched for a slot", rule: "Patience", regime: unreadable, instead: time.Duration(0), as: "two holders at work", seldom: true},
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

// upkeepVariants are careless about trimming the ledger, and about what is found
// in it.
var upkeepVariants = []variant{
	// w0 has read the head, and is cut off for three quarters of an hour before it
	// appends. The head has expired by then, its key is free again, and others have
	// gone on from seq 1.
	{name: "the store deletes the head when it is old", rule: "the head stays", regime: expiring},
	// w0 claims the rest of a day with seq 1, and is cut off before that lands. Others
	// go on with slots of 10 s, and trim all that are over. When w0 is back, it sends
	// seq 1 again, which lands, and works beside the others.
	{name: "a record that has expired may go", rule: "TrimBelow", regime: brieflyCutOff, broken: trimming, instead: func(g store.Record, now timeline.Interval, _ time.Duration) int64 {
		if g.CheckEnvelope() != nil || now.Earliest.Before(g.WindowEnd) {
			return 0
		}
		return g.Seq
	}},
	// The same: w0 is back after three quarters of an hour, and a claim may be worked
	// under for an hour.
	{name: "records are kept for half an hour", rule: "TrimBelow", regime: brieflyCutOff, broken: trimming, instead: func(g store.Record, now timeline.Interval, _ time.Duration) int64 {
		return standard.TrimBelow(g, now, 30*time.Minute)
	}},
	// A record of another version doesn't say when its writer read the head. It is
	// new, as are those below it, which all go.
	{name: "a record that doesn't say when it was made is old", rule: "TrimBelow", regime: newerVersions, broken: trimming, instead: func(g store.Record, now timeline.Interval, retention time.Duration) int64 {
		if g.ReadAt.IsZero() && g.CheckEnvelope() == nil {
			return g.Seq
		}
		return standard.TrimBelow(g, now, retention)
	}},
	// In a long outage w0's append hangs, and lands after an hour. w1 has read the head
	// right before that. In another hour w0's record is trimmed by its own age; w1's
	// append, which is half as old, lands at its key, and w1 works.
	{name: "a record that is old enough goes itself", rule: "TrimBelow", regime: edgeOfTrimming, broken: trimming, instead: func(g store.Record, now timeline.Interval, retention time.Duration) int64 {
		if seq := standard.TrimBelow(g, now, retention); seq > 0 {
			return seq + 1
		}
		return 0
	}},
	// w1 reads the head, and says that it did so a minute ago. So what landed in that
	// minute counts as older than it is.
	{name: "a head was read when the claim was made", rule: "Record.ReadAt", regime: anything, around: sending(func(r *store.Record) {
		r.ReadAt = r.ReadAt.Add(-time.Minute)
	})},
	// Somebody looks what happened an hour ago, and finds ten records.
	{name: "ten records are enough to look back on", rule: "Keep", regime: anything, broken: func(r *machine.Rules) { r.Keep, r.TrimEvery = 10, 1 }},
	// w0 works. Something that isn't a record comes into the ledger. w1 sees no window
	// in it, and takes the slot.
	{name: "what can't be read is free", rule: "Poison", regime: poisoned, instead: func(head store.Record, latest time.Time, ahead, longest time.Duration) error {
		if head.Defect != "" {
			return nil
		}
		return standard.Poison(head, latest, ahead, longest)
	}},
	// w0 works. A record comes into the ledger whose token is that of next year, and
	// whose window ends in a minute. w1 obeys it, and works when that is over.
	{
		name: "whatever has a window is obeyed", rule: "Ahead, Longest", regime: poisoned,
		broken: func(r *machine.Rules) { r.Ahead, r.Longest = 1e6*time.Hour, 1e6*time.Hour },
	},
	// w0 has a slot of 35 min. Something that isn't a record comes into the ledger.
	// w1, with slots of a minute, watches it for a while, and starts anew.
	{name: "poison ends the term below it", rule: "Reset", regime: mixedPoison, instead: func(_ store.Record, now timeline.Interval) (time.Time, int64) {
		return standard.Reset(store.Record{}, now)
	}},
}

// lostVariants obey a store that has lost records at once.
var lostVariants = []variant{
	// All records are lost, and w1, which has just started, claims. w0 extends its lease, on and on.
	{name: "an extension names nothing", rule: "Knows: ByAppend", regime: loses(nil), instead: standard.Knows &^ machine.ByAppend, as: "which was lost"},
	// The same, of a store that compares nothing.
	{
		name: "what was the head is the head", rule: "Knows: ByRead", regime: loses(func(f *sim.Faults) { f.Unfollowed = true }),
		instead: standard.Knows &^ machine.ByRead, as: "which was lost",
	},
	// w1 has read that w0 has the slot. It is shown an older record, and claims the rest.
	{name: "the head that is read is the newest", rule: "Knows: ByMemory", regime: loses(nil), instead: standard.Knows &^ machine.ByMemory, as: "though it knew"},
	// w0's lease was extended after w1 had read the head, and then both records are lost, or that one alone. w1 waits for the
	// end of what it has read, or for nothing.
	{
		name: "what was not read was not granted", rule: "Outlived", regime: loses(nil),
		instead: func(end, _ time.Time, _ time.Duration) time.Time { return end }, as: "though it knew",
	},
	{
		name: "a history is as good as another", rule: "Knows: ByHistory", regime: loses(func(f *sim.Faults) { f.NamesHistory = true }),
		instead: standard.Knows &^ machine.ByHistory, as: "though it knew",
	},
}

// loses is a run in which the store often loses records that it had acknowledged.
func loses(more func(*sim.Faults)) regime {
	return func(seed int64) sim.Options {
		o := sim.Options{
			Seed: seed, Workers: 4, Length: 2 * time.Hour,
			Faults: sim.Faults{Latency: 30 * time.Millisecond, Losses: 5 * time.Minute, Restarts: 30 * time.Minute},
			Worker: workers(func(n int, w *workerlease.Options) {
				w.Priority, w.LeaseInterval, w.FailoverWithin, w.Continuous = n, 5*time.Minute, time.Minute, seed%2 == 0
			}),
		}
		if more != nil {
			more(&o.Faults)
		}
		return o
	}
}
