package workerlease_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
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
	// was heard late: w0 works, and w1 works beside it. (A store that compares the record below would refuse that.)
	{name: "a hint is taken for a release", rule: "Hinted", regime: mishinted, instead: func(head store.Record, now timeline.Interval) store.Record {
		head.Kind, head.WindowEnd = store.KindRelease, now.Latest.Truncate(time.Millisecond)
		return head
	}, broken: func(r *machine.Rules) { r.Knows &^= machine.ByAppend }, as: "starts at"},
	// The store is restarted at the full hour, and answers again a second later. All
	// workers are there, and the slot passes unused.
	{name: "what nobody has at its boundary is missed", rule: "Abandon", regime: shortOutages, instead: func(slot slots.Slot, _ time.Time) time.Time { return slot.Start }},
}

// costVariants mind neither how long a claim takes, nor how often they call the store or
// look at the clock. No two holders work at once for that: what shows is who claims when,
// and what it costs.
var costVariants = []variant{
	// An append takes a second. w7 claims 20 ms after the turn of w6, whose claim is on its way.
	{
		name: "the steps do not mind how slow the store is", rule: "Spread", regime: last(sim.Faults{Latency: 500 * time.Millisecond}),
		instead: func(uncertainty, _ time.Duration) time.Duration { return standard.Spread(uncertainty, 0) }, as: "before its turn",
	},
	// The members of the store differ by half a second. w7 asks another than w6, claims
	// 20 ms after its turn, and has the slot before w6 knows that claims are open.
	{
		name: "the steps do not mind what is uncertain of the time", rule: "Spread", regime: last(sim.Faults{Latency: 20 * time.Millisecond, Skew: 250 * time.Millisecond}),
		instead: func(_, latency time.Duration) time.Duration { return standard.Spread(0, latency) }, as: "before its turn",
	},
	// w0 is across an ocean. It reads the ledger when its turn comes, and w5, which is next to the
	// store, has claimed the slot before w0's claim arrives.
	{
		name: "a claim is begun when its turn comes", rule: "Landing", regime: farAway,
		instead: func(machine.Trips, bool) time.Duration { return 0 }, as: "lower priority", audit: overtaken,
	},
	// The store is busy, and takes six seconds for what it did in a moment. Each operation is
	// given up after three.
	{
		name: "an operation gets the time that it always got", rule: "Timeout", regime: slowStore,
		instead: func(usual, _, _ time.Duration) time.Duration { return usual }, as: "nobody had", audit: unheld,
	},
	// The turn schedule is as high as it may be twice. With a lead of 5 min in slots of 10, w0
	// claims what has not begun when its holder does, and is paused for all of it.
	{name: "claims open two leads before the boundary", rule: "Turn", regime: ranked, instead: func(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
		return standard.Turn(l, p, tie, held, draw) - l.Lead
	}, as: "before its turn"},
	// A thousand workers of one priority are deployed. All read the ledger in the same
	// millisecond, find the slot free, and append.
	{name: "equals are not spread over their turn", rule: "Turn", regime: traced(equals(priority.Random)), instead: func(l priority.Turns, p int, tie priority.TieBreak, held bool, _ uint64) time.Duration {
		return standard.Turn(l, p, tie, held, 0)
	}, as: "appends for", audit: crowded},
	// A hundred workers have lost, and each looks every few seconds whether the holder still
	// lives. That is what the store is busy with.
	{name: "whoever has lost looks again and again", rule: "StandBy", regime: ranked, instead: func(_, opens time.Time, now timeline.Interval, _ time.Duration) time.Time {
		if from := now.Latest.Add(time.Second); from.Before(opens) {
			return from
		}
		return time.Time{}
	}, as: "that costs"},
	// The holder of a slot of an hour dies. All that could take over look at the ledger
	// again before the next one.
	{
		name: "nobody stands by", rule: "StandBy", regime: succeeded,
		instead: func(time.Time, time.Time, timeline.Interval, time.Duration) time.Time { return time.Time{} }, as: "nobody has taken over",
	},
	// The store is asked again in 0.4 ms, which is no whole millisecond. Up to then a
	// processor is busy with waiting, and for ever by a clock of whole milliseconds.
	{name: "a wait is rounded down, to none at all", rule: "Wait", regime: shortOutages, instead: func(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }, as: "spins"},
}

// farAway: workers are up to a quarter of a lead away from the store, each with another
// priority.
func farAway(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 6, Length: 2 * time.Hour,
		Faults: sim.Faults{Latency: 20 * time.Millisecond, Distance: 2500 * time.Millisecond},
		Worker: workers(func(n int, w *workerlease.Options) { w.LeaseInterval, w.Priority = time.Minute, n }),
	}
}

// overtaken reports slots that were lost to a lower priority, if they are more than one in a
// hundred.
func overtaken(r *sim.Result) []string {
	if n := r.Inversions; n*100 > len(r.Leases) {
		return []string{fmt.Sprintf("%d of %d slots were lost to a lower priority", n, len(r.Leases))}
	}
	return nil
}

// slowStore: a call takes up to a lead.
func slowStore(seed int64) sim.Options {
	o := farAway(seed)
	o.Faults = sim.Faults{Latency: time.Second, Distance: 9 * time.Second}
	return o
}

// unheld reports slots that nobody had, if they are more than one in twenty.
func unheld(r *sim.Result) []string {
	// All have started after a minute, and contend for the slot after that.
	const slots = 118 - 2
	if n := len(r.Leases); n < slots*95/100 {
		return []string{fmt.Sprintf("nobody had %d of %d slots", slots-n, slots)}
	}
	return nil
}

// traced is a run of which a trace is kept.
func traced(inner regime) regime {
	return func(seed int64) sim.Options {
		o := inner(seed)
		o.Trace = true
		return o
	}
}

// crowded says so if far more was appended than landed: most of it was sent by workers that
// had all found the same key free.
func crowded(r *sim.Result) []string {
	sent, landed := strings.Count(r.Trace, " append "), 0
	for _, records := range r.Records {
		landed += len(records)
	}
	if sent > 2*landed {
		return []string{fmt.Sprintf("%d appends for %d records", sent, landed)}
	}
	return nil
}

// last is a run of workers of the lowest priority, with steps as short as can be.
func last(f sim.Faults) regime {
	return func(seed int64) sim.Options {
		o := shortOutages(seed)
		o.Length, o.Faults = 3*time.Hour, f
		change(&o, func(_ int, w *workerlease.Options) {
			w.Priority, w.Step, w.LeaseInterval = priority.Lowest, 20*time.Millisecond, time.Minute
		})
		return o
	}
}

// succeeded is a run in which holders die, and are to be succeeded within half a minute.
func succeeded(seed int64) sim.Options {
	o := shortOutages(seed)
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond, Restarts: 30 * time.Minute}
	change(&o, func(_ int, w *workerlease.Options) {
		w.FailoverWithin = 30 * time.Second
	})
	return o
}

// mishinted is a run in which hints lie, and leases are extended.
func mishinted(seed int64) sim.Options {
	o := succeeded(seed)
	o.Hints, o.Faults.HintLies = true, 5*time.Minute
	change(&o, func(_ int, w *workerlease.Options) { w.WaitForBoundary = true })
	return o
}
