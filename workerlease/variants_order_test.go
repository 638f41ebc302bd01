package workerlease_test

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// orderVariants are careless about whose turn it is to claim, and for how long. No two
// holders work at once for that: what shows is who has a slot, or that nobody has.
var orderVariants = []variant{
	// w0 has priority 0, and w3 has priority 3. Both claim in the first second, w3 by
	// chance before w0, and w0 lives and has no lease.
	{name: "priorities share one turn", rule: "Turn", regime: ranked, instead: func(l priority.Turns, _ int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
		return standard.Turn(l, priority.Highest, tie, held, draw)
	}},
	// A priority is taken for a weight. w3 is there for the case that all others are
	// gone, and has all the slots.
	{name: "the lowest priority goes first", rule: "Turn", regime: ranked, instead: func(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
		return standard.Turn(l, priority.Lowest-p, tie, held, draw)
	}, as: "could have claimed it"},
	// Why claim what hasn't begun? w0 does so when the slot begins, and w3, which is
	// alone at night, three seconds later: in each slot nobody works up to then.
	{name: "claims open at the boundary", rule: "Turn", regime: ranked, instead: func(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
		return l.Lead + standard.Turn(l, p, tie, held, draw)
	}},
	// w0 and w1 take turns. w0 had the slot before, claims the next one before w1 by
	// chance, and w1 waits.
	{name: "the holder is one among equals", rule: "Turn", regime: equals(priority.Rotate), instead: func(l priority.Turns, p int, tie priority.TieBreak, _ bool, draw uint64) time.Duration {
		return standard.Turn(l, p, tie, false, draw)
	}},
	// w0 has had the lease for hours, and knows all that is to be done. w1 starts, claims
	// at the very instant at which w0 does, is nearer to the store, and has it.
	{name: "everybody is the holder", rule: "Turn", regime: equals(priority.Sticky), instead: func(l priority.Turns, p int, tie priority.TieBreak, _ bool, draw uint64) time.Duration {
		return standard.Turn(l, p, tie, true, draw)
	}},
	// All are deployed anew. w0 is stopped, and releases its slot with a second to go. w5
	// starts, and begins what it is given a minute for.
	{name: "a worker that starts takes what is left of the slot", rule: "Entry", regime: ranked, instead: func(bool, string) machine.Entry { return machine.AtOnce }},
	// The group works on a day's slot together. w1 is started again at noon, and idles up
	// to midnight.
	{name: "a member of a group waits for the boundary", rule: "Entry", regime: together, instead: func(join bool, group string) machine.Entry {
		if e := standard.Entry(join, group); e != machine.AsMember {
			return e
		}
		return machine.FromNext
	}, as: "has not joined"},
	// A group is four workers, and each slot is for all of them. w0 wins it, and works alone.
	{name: "what a group has is its winner's alone", rule: "Kin", regime: together, instead: func(store.Record, machine.Identity) bool { return false }, as: "does not work under"},
	// Something that isn't a record comes into the ledger. All wait for the worker that
	// understands it.
	{name: "poison is watched for ever", rule: "Patience", regime: strayed, instead: 1000 * time.Hour, as: "still stands"},
	// w1 hears that w0 has released its slot, of which a half is left. It was another type's, or
	// was heard late: w0 works, and w1 works beside it.
	{name: "a hint is taken for a release", rule: "Hinted", regime: mishinted, instead: func(head store.Record, now timeline.Interval) store.Record {
		head.Kind, head.WindowEnd = store.KindRelease, now.Latest.Truncate(time.Millisecond)
		return head
	}, as: "starts at"},
	// The store is restarted at the full hour, and answers again a second later. All
	// workers are there, and the slot passes unused.
	{name: "what nobody has at its boundary is missed", rule: "Abandon", regime: shortOutages, instead: func(slot slots.Slot, _ time.Time) time.Time { return slot.Start }},
}
