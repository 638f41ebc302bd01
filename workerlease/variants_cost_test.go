package workerlease_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

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
