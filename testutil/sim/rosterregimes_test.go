package sim_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// rosterRegimes: workers say in a roster what they do, and take their places by it. What is lost there, old or
// a lie costs order at the worst: the world excuses nothing for it.
var rosterRegimes = []regime{
	{"a roster that lies", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
		o.Hints = false
		attend(o, r)
		f := &o.Faults
		f.RosterLost, f.RosterOld, f.RosterLies = pick(r, 0.1, 0.9), pick(r, 0.1, 0.9), pick(r, 0.1, 0.9)
		f.Restarts, f.Stalls, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute)
	}, nothingMore, careless, "has not been eligible", false},
	{"a process that crashes in each lease", func(o *sim.Options, r *rand.Rand) {
		attend(o, r)
		eachWorker(o, func(n int, w *workerlease.Options) {
			w.Policy, w.TieBreak, w.LeaseInterval, w.Priority = nil, priority.Sticky, time.Minute, n
		})
		o.Faults.CrashLoops, o.Faults.RosterLost = 0.1, pick(r, 0, 0.05) // the one with the highest priority
	}, crashingHaveFew, func(o *sim.Options) { o.Roster = false }, "crashes in each", false},
}

// attend lets workers take part in the roster, by policies and tie-breaks of all kinds.
func attend(o *sim.Options, r *rand.Rand) {
	o.Roster = true
	tie := pick(r, priority.Sticky, priority.Rotate, priority.Spread, priority.Spread)
	policies := []workerlease.Policy{
		nil, nil, workerlease.PreferLabel("region", "eu"), workerlease.OldestVersion("version"), workerlease.FewestLeases(),
		func(own store.Presence, present []store.Presence) (int, string) {
			return len(present)*31 + own.Failures - 40, "at random"
		},
	}
	policy := policies[r.IntN(len(policies))]
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.TieBreak, w.Policy = tie, policy
		w.Labels = map[string]string{"region": []string{"eu", "us"}[n%2], "version": fmt.Sprint("1.", n/3)}
	})
}

// crashingHaveFew demands that a process which crashes in each lease leaves nine in ten slots to the others, besides
// those that it takes to notice it.
func crashingHaveFew(_ sim.Options, r *sim.Result, _ *tally) []string {
	crashing := 0
	slots := map[time.Duration]bool{}
	for _, l := range r.Leases {
		slots[l.Start] = true
		if l.Worker == 0 {
			crashing++
		}
	}
	if crashing > len(slots)/10+10 {
		return []string{fmt.Sprintf("w0, which crashes in each lease, has %d of %d slots", crashing, len(slots))}
	}
	return nil
}
