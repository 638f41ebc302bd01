package workerlease_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// rosterVariants make too little or too much of what workers say of themselves. No two holders work at once for
// that: what shows is who has a slot.
var rosterVariants = []variant{
	// w0 has the highest priority. It runs out of memory in each slot, is started again, and goes first.
	{name: "a crash is forgotten by the next start", rule: "Recall", regime: crashing, instead: func(machine.Trouble) machine.Trouble { return machine.Trouble{} }, audit: crashesOften},
	// Workers in another region than the store's have the highest priority by themselves.
	{name: "a policy changes nothing", rule: "Rank", regime: regional, instead: func(_ machine.Rank, own int) machine.Rank { return machine.Rank{Priority: own} }, audit: farHasMost},
}

// crashing: the process of the worker with the highest priority crashes in each slot.
func crashing(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 3, Length: 12 * time.Hour, Roster: true,
		Faults: sim.Faults{Latency: 10 * time.Millisecond, CrashLoops: 0.3},
		Worker: workers(func(n int, w *workerlease.Options) { w.LeaseInterval, w.Priority = time.Minute, n }),
	}
}

// crashesOften finds more than a tenth of the slots, and more than it takes to notice, in the hands of the
// worker whose process crashes.
func crashesOften(r *sim.Result) []string {
	n := 0
	slots := map[time.Duration]bool{}
	for _, l := range r.Leases {
		slots[l.Start] = true
		if l.Worker == 0 {
			n++
		}
	}
	if n > len(slots)/10+10 {
		return []string{fmt.Sprintf("w0, whose process crashes in each lease, has %d of %d slots", n, len(slots))}
	}
	return nil
}

// regional: those that are far away let the others go first, whatever their priorities.
func regional(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 4 * time.Hour, Roster: true, Faults: sim.Faults{Latency: 10 * time.Millisecond},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.LeaseInterval, w.Priority, w.Labels = 5*time.Minute, n, map[string]string{"region": []string{"us", "eu"}[n/2]}
			w.Policy = func(own store.Presence, _ []store.Presence) (int, string) {
				if own.Labels["region"] == "eu" {
					return own.Priority, ""
				}
				return own.Priority + 4, "far away"
			}
		}),
	}
}

// farHasMost finds most slots in the hands of workers that are to go last.
func farHasMost(r *sim.Result) []string {
	far := 0
	for _, l := range r.Leases {
		if l.Worker < 2 {
			far++
		}
	}
	if far > len(r.Leases)/2 {
		return []string{fmt.Sprintf("workers that are far away have %d of %d leases", far, len(r.Leases))}
	}
	return nil
}
