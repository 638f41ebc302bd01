package workerlease_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// extended is a run in which leases are extended, or a task is run once per slot.
func extended(seed int64) sim.Options {
	o := sim.RandomExtended(seed)
	o.Length, o.Hints = time.Hour, false
	return o
}

// twinParts is a run in which two workers each have one name, and leases are taken
// for a part of a slot at a time.
func twinParts(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = time.Hour
	o.Faults.Restarts, o.Faults.Stalls = 3*time.Minute, 0
	o.Worker = workers(func(n int, w *workerlease.Options) {
		w.InstanceID, w.LeaseInterval, w.FailoverWithin, w.JoinMidSlot = fmt.Sprint("w", n/2), time.Minute, 10*time.Second, true
	})
	return o
}

// endless is a run in which the leader goes on from slot to slot, over a store that
// often fails.
func endless(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = time.Hour
	o.Faults.Outages, o.Faults.Partitions = 5*time.Minute, 5*time.Minute
	change(&o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.Group, w.Continuous = time.Minute, "", true
	})
	return o
}

// mortal is a calm run in which leases are taken for a part of a slot at a time.
func mortal(seed int64) sim.Options {
	o := ranked(seed)
	change(&o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.FailoverWithin = 10*time.Minute, time.Minute
	})
	return o
}

// parts is a run in which leases are taken for a part of a slot at a time, and workers
// start in the middle of slots.
func parts(seed int64) sim.Options {
	o := twinParts(seed)
	o.Faults.Poisons = 0 // What is planted takes the place of the living.
	change(&o, func(n int, w *workerlease.Options) {
		w.InstanceID = fmt.Sprint("w", n)
	})
	return o
}

// supplanted finds claims of the rest of a slot that were made, by a head read before
// the end of its window, while its holder could have extended it.
func supplanted(r *sim.Result) (wrong []string) {
	for _, records := range r.Records {
		for i := 1; i < len(records); i++ {
			head, next := records[i-1], records[i]
			over := head.Kind == store.KindRelease || head.Kind == store.KindReset || head.Check() != nil
			if over || next.Kind != store.KindGrant || next.Claim == head.Claim || next.Seq != head.Seq+1 ||
				!head.WindowEnd.Before(head.SlotEnd) || !next.WindowStart.After(next.SlotStart) {
				continue
			}
			if next.ReadAt.Before(head.WindowEnd) {
				wrong = append(wrong, fmt.Sprintf("seq %d of %s takes the rest of a slot over the living %s",
					next.Seq, next.InstanceID, head.InstanceID))
			}
		}
	}
	return wrong
}

// extendVariants are careless about going on with a term.
var extendVariants = []variant{
	// w0's window ends before the reply to its extension comes. w1, whose clock is ahead,
	// was about to take over; w0 begins again under a lease that it has reported to its user
	// is over.
	{name: "work resumes when a late extension is known", rule: "Resume", regime: extended, instead: func(_ machine.Term, r store.Record) bool { return r.Kind == store.KindGrant }},
	// w0's extension fails, and its window ends, or its code has. When the store answers
	// again, w0 sends it once more: it holds a window that nobody works in.
	{name: "a term that was left is extended", rule: "Prolong", regime: endless, instead: func(machine.Term, store.Record) bool { return true }, as: "what has ended"},
	// w1 starts in the middle of w0's slot, and claims what is left of it from the end of
	// w0's window on: w0 can't extend that, although it lives.
	{name: "what is left of a slot is claimed over the living", rule: "MayExtend", regime: parts, instead: func(store.Record, timeline.Interval) bool { return false }, audit: supplanted},
	// w0 dies. Its slot has been given to it, and w1, which was to take over, leaves it that
	// to its end.
	{
		name: "a slot is its first holder's, also when that is dead", rule: "MayExtend", regime: mortal,
		instead: func(head store.Record, now timeline.Interval) bool { return now.Earliest.Before(head.SlotEnd) }, as: "nobody has taken over",
	},
	// w0 was restarted, or copied with its settings. It takes its twin's lease for its
	// own and works on under it.
	{name: "a term is told by the InstanceID", rule: "Extend", regime: twinParts, broken: func(r *machine.Rules) {
		r.Extend = func(_ machine.Term, head store.Record, id machine.Identity) bool {
			return head.InstanceID == id.InstanceID && head.Kind != store.KindRelease
		}
		r.Mine = func(r store.Record, id machine.Identity) bool { return r.InstanceID == id.InstanceID }
	}},
	// w1 finds a gap between w0's window and the slot that it claims, and takes it: w0
	// can't extend its lease, although it lives.
	{name: "the next slot is claimed over the living", rule: "Gap", regime: extended, instead: func(time.Time, store.Record, timeline.Interval) bool { return false }},
	// w1 takes over from where it stands, and not from the end of the window: w0 lives.
	{name: "a standby takes over before the end", rule: "Start", regime: extended, instead: func(c machine.Claim, _ store.Record) time.Time { return c.Start }},
}
