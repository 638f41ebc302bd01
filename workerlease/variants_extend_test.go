package workerlease_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// extended is a run in which leases are extended, or a task is run once per slot.
func extended(seed int64) sim.Options {
	o := sim.RandomExtended(seed)
	o.Length = time.Hour
	return o
}

// jobs is a run of the kind in which a task is run once per slot.
func jobs(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = time.Hour
	o.Faults.Restarts = 5 * time.Minute
	o.Task = sim.DefaultTask
	o.Worker = func(n int) workerlease.Options {
		return workerlease.Options{
			WorkerType: "sim", InstanceID: fmt.Sprint("w", n), Priority: n / 2, LeaseInterval: time.Minute,
			OncePerSlot: true, MaxAttempts: 3,
		}
	}
	return o
}

// twinParts is a run in which two workers each have one name, and leases are taken
// for a part of a slot at a time.
func twinParts(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = time.Hour
	o.Faults.Restarts, o.Faults.Stalls = 3*time.Minute, 0
	o.Worker = func(n int) workerlease.Options {
		return workerlease.Options{
			WorkerType: "sim", InstanceID: fmt.Sprint("w", n/2), LeaseInterval: time.Minute, FailoverWithin: 10 * time.Second,
			JoinMidSlot: true,
		}
	}
	return o
}

// extendVariants are careless about going on with a tenure, and about what is done.
var extendVariants = []variant{
	// w0's window ends before the reply to its extension comes. w1, whose clock is ahead,
	// was about to take over; w0 begins again under a lease that it has told its user
	// is over.
	{
		name: "work resumes when a late extension is known", rule: "TakeUp", regime: extended,
		broken: func(r *machine.Rules) {
			r.TakeUp = func(machine.Tenure, store.Record) bool { return true }
		},
	},
	// w0 was restarted, or copied with its settings. It takes its twin's lease for its
	// own and works on under it.
	{
		name: "a tenure is told by the InstanceID", rule: "Extend", regime: twinParts,
		broken: func(r *machine.Rules) {
			r.Extend = func(_ machine.Tenure, head store.Record, id machine.Identity) bool {
				return head.InstanceID == id.InstanceID && head.Kind != store.KindRelease
			}
			r.Mine = func(r store.Record, id machine.Identity) bool { return r.InstanceID == id.InstanceID }
		},
	},
	// w0 is done, and dies. w1 does it again.
	{
		name: "a done slot is claimed", rule: "IsDone", regime: jobs,
		broken: func(r *machine.Rules) {
			r.IsDone = func(machine.Carried, slots.Slot) bool { return false }
		},
	},
	// w0 is done with its slot after w1 has won the next. w0's record stands in w1's
	// way: w1 finds that the head is not its own any more.
	{
		name: "a done record takes the tenure", rule: "Done", regime: jobs,
		broken: func(r *machine.Rules) {
			r.Done = func(r, head store.Record, until time.Time) store.Record {
				claim, name := "0123456789abcdef", r.InstanceID
				r = standard.Done(r, head, until)
				r.Claim, r.InstanceID = claim, name
				return r
			}
		},
	},
	// w0 is done. w1 wins the next slot, and releases it: whoever reads the head learns
	// nothing of what is done.
	{
		name: "what is done is told by its own record only", rule: "Carry", regime: jobs,
		broken: func(r *machine.Rules) {
			r.Carry = func(head store.Record) machine.Carried {
				c := standard.Carry(head)
				c.DoneUntil = time.Time{}
				return c
			}
		},
	},
	// Each worker counts its own attempts: together they try for ever.
	{
		name: "attempts are not counted in the ledger", rule: "Carry", regime: jobs,
		broken: func(r *machine.Rules) {
			r.Carry = func(head store.Record) machine.Carried {
				c := standard.Carry(head)
				c.Attempt = 0
				return c
			}
		},
	},
	// w1 finds a gap between w0's window and the slot that it claims, and takes it: w0
	// can't extend its lease, although it lives.
	{
		name: "the next slot is claimed over the living", rule: "Gap", regime: extended,
		broken: func(r *machine.Rules) {
			r.Gap = func(time.Time, store.Record, timeline.Interval) bool { return false }
		},
	},
	// w1 takes over from where it stands, and not from the end of the window: w0 lives.
	{
		name: "a standby takes over before the end", rule: "Start", regime: extended,
		broken: func(r *machine.Rules) {
			r.Start = func(c machine.Claim, _ store.Record) time.Time { return c.Start }
		},
	},
}
