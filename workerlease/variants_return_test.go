package workerlease_test

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// returnVariants are careless about giving a lease back.
var returnVariants = []variant{
	// w0's code outlasts its lease. w0 claims a slot that it can't work in, and nobody
	// else gets it.
	{name: "slots are claimed although code still runs", rule: "Await: Claiming", regime: overruns,
		broken: func(r *machine.Rules) { r.Await &^= machine.Claiming }},
	// w0's slot is not over, and w1 has claimed the next. w0 is stopped and releases
	// w1's claim, w2 takes the slot, and w1 begins all the same.
	{name: "whoever stops releases the head", rule: "Releasable", regime: restarts, broken: func(r *machine.Rules) {
		r.Releasable = func(head store.Record, id machine.Identity) bool {
			return id.Group == "" && head.Kind != store.KindRelease
		}
	}},
	// w1 was started with a copy of w0's settings. w0 is stopped, and releases what w1
	// has claimed.
	{name: "a release goes by the InstanceID", rule: "Releasable", regime: twins, broken: func(r *machine.Rules) {
		r.Releasable = func(head store.Record, id machine.Identity) bool {
			return id.Group == "" && head.InstanceID == id.InstanceID && head.Kind != store.KindRelease
		}
	}},
	// w0 and w1 are of one group and work under w0's claim. w0 is stopped and releases
	// it, w2 takes the rest of the slot, and w1 works on.
	{name: "a member releases its group's term", rule: "Releasable", regime: groups, broken: func(r *machine.Rules) {
		r.Releasable = func(head store.Record, id machine.Identity) bool {
			id.Group = ""
			return standard.Releasable(head, id)
		}
	}},
	// w0 works, and w1 has claimed the next slot. w1 is stopped, and releases from now
	// on. For w2, which starts then, claims for the next slot are not open yet: it
	// takes what is left of the slot in which w0 works.
	{name: "a release frees all from now on", rule: "ReleaseAt", regime: mixedLeads, broken: func(r *machine.Rules) {
		r.ReleaseAt = func(_ store.Record, now timeline.Interval) time.Time {
			return now.Latest.Truncate(time.Millisecond).Add(time.Millisecond)
		}
	}},
	// w0's task fails, and w0 gives the rest of the slot away. Its release is unanswered,
	// and not to be found. w0 takes its own lease up again; the release lands, and w1
	// works.
	{name: "a release that is not found has failed", rule: "Resume", regime: failures, broken: func(r *machine.Rules) {
		r.Resume = func(machine.Term, store.Record) bool { return true }
	}, as: "works after its release was sent"},
	// w0 is stopped, and its code takes some seconds to tidy up. w1 starts, finds the
	// release, and works.
	{name: "a release is sent at once", rule: "Await: Releasing", regime: restarts, broken: func(r *machine.Rules) { r.Await &^= machine.Releasing }},
	// w0's code outlasts its lease by some seconds. w0 has won the next slot, too, and
	// calls LeaseAllocated again.
	{name: "the next lease begins although code still runs", rule: "Await: Beginning", regime: overruns,
		broken: func(r *machine.Rules) { r.Await &^= machine.Beginning }},
}
