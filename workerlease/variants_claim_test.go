package workerlease_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// claimVariants are careless about what may be claimed, and what was.
var claimVariants = []variant{
	// w1, in mid-slot, claims from the next boundary on after w0's slot of 7 min, which
	// w0 could still have extended.
	{name: "a gap behind a living term is left", rule: "Gap", regime: mixedIntervals, instead: func(time.Time, store.Record, timeline.Interval) bool { return false }},
	// w0 takes the slot, w1 reads w0's grant, and takes the slot, too.
	{name: "a grant starts with its slot, whatever the head says", rule: "Start", regime: anything, instead: func(c machine.Claim, _ store.Record) time.Time { return c.Start }},
	// w0, with slots of 7 min, holds the lease. w1, with slots of 1 min, takes its grant
	// for one of 1 min, and claims the next minute.
	{name: "a head ends when one's own interval is over", rule: "Start", regime: mixedIntervals, instead: func(c machine.Claim, head store.Record) time.Time {
		if length := c.End.Sub(c.Start); head.WindowEnd.Sub(head.WindowStart) > length {
			head.WindowEnd = head.WindowStart.Add(length)
		}
		return standard.Start(c, head)
	}},
	// A version to come adds a note to the ledger, at the end of w0's window. w1 knows
	// no such kind, and takes the slot.
	{name: "only grants and releases have a window", rule: "Start", regime: newerVersions, instead: func(c machine.Claim, head store.Record) time.Time {
		if head.Kind != store.KindGrant && head.Kind != store.KindRelease {
			return c.Start
		}
		return standard.Start(c, head)
	}},
	// w0's slot of 7 min has begun, but w1 works until the end of its slot of 1 min. w0
	// claims what follows, and begins with its slot.
	{name: "a term begins with its slot", rule: "Term", regime: mixedIntervals, instead: func(g store.Record, own bool, slot slots.Slot) machine.Term {
		t := standard.Term(g, own, slot)
		t.Start = slot.Start
		return t
	}},
	// w0 and w1 are of one group. w0 takes its slot of 10 s. w1 joins it, and works to
	// the end of its own slot of 70 s.
	{name: "a term ends with one's own slot", rule: "Term", regime: mixedGroups, instead: func(g store.Record, own bool, slot slots.Slot) machine.Term {
		t := standard.Term(g, own, slot)
		t.End = slot.End
		return t
	}},
	// w0's append gets lost, and w0 works. w1 claims the same slot.
	{name: "an append without an answer has landed", rule: "Outcome", regime: anything, instead: func(err error) machine.Outcome {
		if o := standard.Outcome(err); o != machine.OutcomeUnknown {
			return o
		}
		return machine.Landed
	}},
	// Drivers retry, so w0 takes each conflict for one with its own record. It was
	// w1's, which works.
	{name: "a conflict is one with oneself", rule: "Outcome", regime: anything, instead: func(err error) machine.Outcome {
		if errors.Is(err, store.ErrConflict) {
			return machine.Landed
		}
		return standard.Outcome(err)
	}},
	// w1 was started with a copy of w0's settings. It finds w0's record, with its own
	// InstanceID, and works under it.
	{name: "a record with one's own InstanceID is one's own", rule: "Mine", regime: twins, instead: func(g store.Record, id machine.Identity) bool { return g.InstanceID == id.InstanceID }},
	// w0's append is unanswered. It reads back what stands there, which is w1's.
	{name: "what stands where one has written is one's own", rule: "Mine", regime: anything, instead: func(store.Record, machine.Identity) bool { return true }},
	// w0 has no group, and w1 has none, so that it joins w0's lease.
	{name: "workers without a group are a group", rule: "Kin", regime: anything, instead: func(g store.Record, id machine.Identity) bool { return g.Group == id.Group }},
	// w0 claims the rest of a day with seq 1, and is cut off before that lands. Others
	// go on with slots of 10 s, and trim. After hours w0 is back, sends seq 1 again,
	// which lands, and works beside the others.
	{name: "a claim never ages", rule: "ClaimAge", regime: cutOff, instead: 1000 * time.Hour},
	// The same, since w0 counts the age anew when it finds that nothing has landed.
	{name: "a claim is as old as its last try", rule: "Resend", regime: cutOff, instead: func(c machine.Claim, sent store.Record, at machine.Moment) (machine.Claim, store.Record) {
		c.Local = at.Local
		return c, sent
	}},
	// w0 takes a slot, is stopped, and releases it. w1 takes what is left, and gets the
	// same token.
	{name: "the token is the start of the slot", rule: "Token", regime: restarts, instead: func(start time.Time, _ store.Record) int64 { return start.Truncate(10 * time.Second).UnixMilli() }},
	// A reset of now supersedes poison. Who claims from then on gets its token.
	{name: "the token is the start of the window", rule: "Token", regime: slowPoison, instead: func(start time.Time, _ store.Record) int64 { return start.UnixMilli() }},
	// Tokens begin with 1. When the ledger is dropped, they begin again, and the
	// resource takes what is old for new.
	{name: "the token counts terms", rule: "Token", regime: anything, instead: func(_ time.Time, head store.Record) int64 { return head.Token + 1 }},
}

// returnVariants are careless about giving a lease back.
var returnVariants = []variant{
	// w0's code outlasts its lease. w0 claims a slot that it can't work in, and nobody
	// else gets it.
	{name: "slots are claimed although code still runs", rule: "Await: Claiming", regime: overruns, instead: standard.Await &^ machine.Claiming},
	// w0's slot is not over, and w1 has claimed the next. w0 is stopped and releases
	// w1's claim, w2 takes the slot, and w1 begins all the same.
	{name: "whoever stops releases the head", rule: "Releasable", regime: restarts, instead: func(head store.Record, id machine.Identity) bool {
		return id.Group == "" && head.Kind != store.KindRelease
	}},
	// w1 was started with a copy of w0's settings. w0 is stopped, and releases what w1
	// has claimed.
	{name: "a release goes by the InstanceID", rule: "Releasable", regime: twins, instead: func(head store.Record, id machine.Identity) bool {
		return id.Group == "" && head.InstanceID == id.InstanceID && head.Kind != store.KindRelease
	}},
	// w0 and w1 are of one group and work under w0's claim. w0 is stopped and releases
	// it, w2 takes the rest of the slot, and w1 works on.
	{name: "a member releases its group's term", rule: "Releasable", regime: groups, instead: func(head store.Record, id machine.Identity) bool {
		id.Group = ""
		return standard.Releasable(head, id)
	}},
	// w0 works, and w1 has claimed the next slot. w1 is stopped, and releases from now
	// on. For w2, which starts then, claims for the next slot are not open yet: it
	// takes what is left of the slot in which w0 works.
	{name: "a release frees all from now on", rule: "ReleaseAt", regime: mixedLeads, instead: func(_ store.Record, now timeline.Interval) time.Time {
		return now.Latest.Truncate(time.Millisecond).Add(time.Millisecond)
	}},
	// w0's task fails, and w0 gives the rest of the slot away. Its release is unanswered,
	// and not to be found. w0 takes its own lease up again; the release lands, and w1
	// works.
	{name: "a release that is not found has failed", rule: "Resume", regime: failures, instead: func(_ machine.Term, r store.Record) bool { return r.Kind == store.KindRelease }, as: "works after its release was sent"},
	// w0 is stopped, and its code takes some seconds to tidy up. w1 starts, finds the
	// release, and works.
	{name: "a release is sent at once", rule: "Await: Releasing", regime: restarts, instead: standard.Await &^ machine.Releasing},
	// w0's code outlasts its lease by some seconds. w0 has won the next slot, too, and
	// calls LeaseAllocated again.
	{name: "the next lease begins although code still runs", rule: "Await: Beginning", regime: overruns, instead: standard.Await &^ machine.Beginning},
}

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
		w.InstanceID, w.LeaseInterval, w.FailoverWithin = fmt.Sprint("w", n/2), time.Minute, 10*time.Second
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
