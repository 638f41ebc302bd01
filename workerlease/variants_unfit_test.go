package workerlease_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// unfitVariants don't heed what Options.Eligible says, or that code makes no progress. No two holders
// work at once for that: what shows is who has a slot.
var unfitVariants = []variant{
	// w0's queue is down. It claims as ever, and gives back what it gets: each slot begins late.
	{name: "who is not eligible claims", rule: "Heeds: Claiming", regime: unwell, instead: standard.Heeds &^ machine.Claiming, as: "claims a slot"},
	// w0 wins the next slot, and its queue goes down before that begins.
	{name: "who has won begins", rule: "Heeds: Beginning", regime: unwell, instead: standard.Heeds &^ machine.Beginning, as: "begins to work"},
	// w0's queue goes down in the middle of an hour's slot. It holds the lease, and does nothing.
	{name: "who holds a lease keeps it", rule: "Heeds: Holding", regime: unwell, instead: standard.Heeds &^ machine.Holding, as: "works on under"},
	// w0's code waits for a reply that never comes.
	{name: "a lease needs no progress", rule: "Heeds: Stalling", regime: unwell, instead: standard.Heeds &^ machine.Stalling, as: "no progress"},
	// w0 was fine when it started.
	{name: "an answer counts for ever", rule: "Counts", regime: unwell, instead: func(time.Duration) time.Duration { return 1000 * time.Hour }, as: "not been eligible"},
	// w0 has the highest priority, and its code fails in each slot. It has all slots.
	{name: "who fails goes first again", rule: "StepBack", regime: failing, instead: func(int) int { return 0 }, audit: failsOften},
	// w0 steps down, is fit again a minute later, and nobody works up to the end of the slot.
	{
		name: "who steps down keeps the slot", rule: "GivesBack: AfterStepDown", regime: unwellInLongSlots,
		instead: standard.GivesBack &^ machine.AfterStepDown, audit: idleFor(30 * time.Minute),
	},
}

// unwell: the workers are ill at times, and their code hangs.
func unwell(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 6 * time.Hour,
		Faults: sim.Faults{Latency: 10 * time.Millisecond, Illnesses: 15 * time.Minute, Stuck: 0.3},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.LeaseInterval, w.FailoverWithin, w.Priority = 20*time.Minute, 2*time.Minute, n
			w.EligibleEvery, w.EligibleTimeout, w.ProgressWithin = 5*time.Second, time.Second, 2*time.Minute
		}),
	}
}

// unwellInLongSlots: the same in slots of four hours, of which who steps down takes the rest when it is
// fit again.
func unwellInLongSlots(seed int64) sim.Options {
	o := unwell(seed)
	change(&o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.FailoverWithin, w.ProgressWithin = 4*time.Hour, 0, 0
	})
	o.Length, o.Faults.Stuck = 12*time.Hour, 0
	return o
}

// failing: the task of the worker with the highest priority fails at once.
func failing(seed int64) sim.Options {
	o := sim.Options{
		Seed: seed, Workers: 3, Length: 12 * time.Hour, Faults: sim.Faults{Latency: 10 * time.Millisecond},
		Worker: workers(func(n int, w *workerlease.Options) { w.LeaseInterval, w.Priority = time.Minute, n }),
	}
	o.Task = func(p *sim.Process) workerlease.Task {
		return func(ctx context.Context, l workerlease.Lease) error {
			p.Work(l)
			if p.Worker == 0 {
				return errUnwell
			}
			<-ctx.Done()
			return nil
		}
	}
	return o
}

// failsOften finds more than a tenth of the slots in the hands of a worker that always fails.
func failsOften(r *sim.Result) []string {
	n := 0
	for _, l := range r.Leases {
		if l.Worker == 0 {
			n++
		}
	}
	if 10*n > len(r.Leases) {
		return []string{fmt.Sprintf("w0, whose task always fails, has %d of %d leases", n, len(r.Leases))}
	}
	return nil
}

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
