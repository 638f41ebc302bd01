package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// finishVariants are careless about work that its slot is too short for.
var finishVariants = []variant{
	// w0's work takes 78 s of its slot of 1 min. It is cut in each slot, and nothing is ever done.
	{name: "work ends with its slot", rule: "Finishes", regime: lasting(78*time.Second, 0), instead: func(machine.Term) bool { return false }, audit: cutWork},
	// w0's run goes on over 00:01. It extends its lease for that by an append that takes long, and w1 has claimed the slot.
	{name: "who runs may be followed at the next boundary", rule: "Outlasts", regime: slowToExtend, instead: func(store.Record, slots.Slot, timeline.Interval) bool { return false }, audit: lostRuns},
	// w0's job of 00:01 fails for the third time, in the slot of 00:02. That of 00:02 fails, and that of 00:01 is begun
	// again.
	{name: "each slot that is open is caught up", rule: "Oldest", regime: catchingUp, instead: func(from, _, done time.Time) time.Time { return standard.Oldest(from, time.Time{}, done) }, as: "MaxAttempts"},
	// w0's run of 00:01 ends in the slot of 00:02, too late for that, and w0 is cut off. w1 begins 00:02, and w0 then says that
	// this is done, too.
	{name: "what another has begun is done by the run before", rule: "DoneAfter", regime: overrunningApart, instead: func(_, done slots.Slot, _ store.Record, _ slots.Schedule) slots.Slot { return done }, audit: doneByTheRunBefore},
	// w0 leads alone, and fails at once. It leads again and again, ten times a minute.
	{name: "a leader that is alone tries again at once", rule: "Again", regime: failingAlone, instead: func(time.Duration, int, time.Duration) time.Duration { return 0 }, audit: manyTerms},
	// w0's work hangs, and nobody does anything for hours.
	{name: "work may take as long as it likes", rule: "Exceeds", regime: lasting(time.Hour, 150*time.Second), instead: func(time.Duration, time.Duration) bool { return false }, audit: endlessWork},
}

// lasting is a run of jobs that take so long, and may take only so long, with slots of a minute.
func lasting(takes, timeout time.Duration) regime {
	return func(seed int64) sim.Options {
		return sim.Options{
			Seed: seed, Workers: 3, Length: 10 * time.Minute, Task: brief(takes), Faults: sim.Faults{Latency: 30 * time.Millisecond},
			Worker: workers(func(n int, w *workerlease.Options) {
				w.Priority, w.LeaseInterval, w.Job = n, time.Minute, &workerlease.Job{Timeout: timeout}
			}),
		}
	}
}

// cutWork finds attempts that were cut at the end of their slots.
func cutWork(r *sim.Result) []string {
	for _, x := range r.Records["sim"] {
		if o, ok := x.Outcome(); ok && o.Cause == store.LeaseLost && o.SlotEnd.Sub(o.Ended) < time.Second && !o.Ended.After(o.SlotEnd) {
			return []string{fmt.Sprintf("seq %d says that work was cut at the end of its slot", x.Seq)}
		}
	}
	return nil
}

// slowToExtend is a run of jobs that take longer than their slots, with a store that takes now longer, now shorter.
func slowToExtend(seed int64) sim.Options {
	o := lasting(150*time.Second, 0)(seed)
	o.Faults.Latency = 400 * time.Millisecond
	change(&o, func(_ int, w *workerlease.Options) {
		w.Priority, w.LeaseInterval, w.TieBreak = 0, 20*time.Second, priority.Random
	})
	return o
}

// lostRuns finds terms that end at a boundary at which another one begins, without a word of what came of them.
func lostRuns(r *sim.Result) []string {
	var before store.Record
	for _, x := range r.Records["sim"] {
		taken := x.Kind == store.KindGrant && before.Kind == store.KindGrant && x.Claim != before.Claim && x.WindowStart.Equal(x.SlotStart)
		if taken && x.WindowStart.Equal(before.WindowEnd) {
			return []string{fmt.Sprintf("seq %d takes a boundary from the run of %v", x.Seq, before.SlotStart)}
		}
		before = x
	}
	return nil
}

// endlessWork finds terms that last for longer than a run may take and a slot.
func endlessWork(r *sim.Result) []string {
	began := map[string]time.Time{}
	for _, x := range slices.Clone(r.Records["sim"]) {
		if _, ok := began[x.Claim]; !ok {
			began[x.Claim] = x.WindowStart
		}
		if x.WindowEnd.Sub(began[x.Claim]) > 4*time.Minute {
			return []string{fmt.Sprintf("seq %d is of a run since %v", x.Seq, began[x.Claim])}
		}
	}
	return nil
}

// catchingUp is a run of jobs that fail often, and are caught up one after the other.
func catchingUp(seed int64) sim.Options {
	o := jobs(seed)
	change(&o, func(_ int, w *workerlease.Options) {
		w.Job = &workerlease.Job{MaxAttempts: 3, CatchUp: workerlease.CatchUpAll, MinRetry: 10 * time.Millisecond}
	})
	return o
}

// overrunningApart is a run of jobs that end some seconds too late for the next slot, by workers that are cut off now and then.
func overrunningApart(seed int64) sim.Options {
	o := lasting(79*time.Second, 0)(seed)
	o.Length, o.Faults.Partitions = 2*time.Hour, 4*time.Minute
	change(&o, func(_ int, w *workerlease.Options) {
		w.FailoverWithin, w.Job = 5*time.Second, &workerlease.Job{CatchUp: workerlease.CatchUpNewest}
	})
	return o
}

// doneByTheRunBefore finds records that say of the slot of one run that it is done by another one.
func doneByTheRunBefore(r *sim.Result) []string {
	for _, x := range r.Records["sim"] {
		o, ok := x.Outcome()
		done, err := store.ParseDone(x.Done)
		if x.Kind == store.KindDone && ok && err == nil && x.SlotStart.After(o.SlotStart) && !x.SlotStart.After(done.Start) {
			return []string{fmt.Sprintf("seq %d says that the run of %v has done what another one has begun", x.Seq, o.SlotStart)}
		}
	}
	return nil
}

// failingAlone is a run of one leader that fails whenever it leads.
func failingAlone(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 1, Length: 20 * time.Minute, Faults: sim.Faults{Latency: 30 * time.Millisecond},
		Task: func(*sim.Process) workerlease.Task {
			return func(context.Context, workerlease.Lease) error { return errWork }
		},
		Worker: workers(func(_ int, w *workerlease.Options) {
			w.LeaseInterval, w.FailoverWithin, w.Continuous = 5*time.Minute, 10*time.Second, true
		}),
	}
}

// manyTerms finds slots of which the rest was claimed over and over.
func manyTerms(r *sim.Result) []string {
	terms, claim := map[time.Time]int{}, ""
	for _, x := range r.Records["sim"] {
		if x.Kind != store.KindGrant || x.Claim == claim {
			continue
		}
		claim = x.Claim
		if terms[x.SlotStart]++; terms[x.SlotStart] > 12 {
			return []string{fmt.Sprintf("seq %d is the %d. term in the slot of %v", x.Seq, terms[x.SlotStart], x.SlotStart)}
		}
	}
	return nil
}
