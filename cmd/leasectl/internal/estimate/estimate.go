// Package estimate works out what workers of one type will cost: operations and request
// units for each slot and each day, next to a lock that is renewed and to the original
// of this protocol. It is pure. Tests hold it against the engine and the stores.
package estimate

import (
	"cmp"
	"math"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// The consistency levels of an account.
const (
	Strong           = "strong"
	BoundedStaleness = "bounded-staleness"
	Session          = "session"
	ConsistentPrefix = "consistent-prefix"
	Eventual         = "eventual"
)

// Options are the options of an estimate.
type Options struct {
	Store       string // one of the kinds
	Unbilled    bool   // the store bills no request units: Mongo, but for that of Azure Cosmos DB
	Consistency string
	Workers     int
	// Timing follows from the options of the workers.
	Timing workerlease.Timing
	// Slot is the length of the slots; 0: they differ, and the mean counts.
	Slot time.Duration
}

// Estimate is the cost of workers of one type.
type Estimate struct {
	Options

	kind          kind
	winner, loser operations
	slotsPerDay   float64
	parts         parts
	turns         priority.Turns
	rows          []row
	days          []day
	// trim is one trim, which comes at once.
	trim   cost
	prices prices
	kept   Kept
}

// row are the operations of one slot.
type row struct {
	who     string
	workers int // 0 if it isn't about workers
	each    operations
	cost    cost
}

// day is a protocol's day.
type day struct {
	protocol string
	cost     cost
	peak     float64 // RU in the worst second
}

// Of works out an estimate.
func Of(o Options) Estimate {
	t, slot := o.Timing, o.Slot
	if slot == 0 {
		slot = meanSlot(t.Options.Schedule) // which looks at each slot of a year
	}
	e := Estimate{Options: o, kind: kinds[o.Store], slotsPerDay: perDay(slot), turns: t.Turns(t.LeadAfter(t.ShortestSlot), 0)}
	e.parts = cut(t, slot, e.turns.Lead)
	between := time.Duration(float64(slot) / e.parts.n)
	e.kept = keeping(o, between)
	e.prices = pricesFor(o, e.kept.AtMost)
	e.winner, e.loser = e.parts.claims()
	extending, standingBy := e.parts.extending(), e.parts.standingBy()
	if e.kind.requests != nil {
		// Each append shows the time, which saves most looks at it while a lease is extended. In short slots a clock of
		// whole seconds takes one more. Both are the most that there may be.
		extending[opNow] = 0
		if slot < poorly {
			e.winner[opNow]++
		}
	}
	trims := trimming(t, between)
	share := times(trims, e.parts.n/float64(t.TrimEvery))
	add := func(who string, workers int, each operations) cost {
		r := row{who, workers, each, e.prices.of(each)}
		e.rows = append(e.rows, r)
		return r.cost
	}
	n := float64(o.Workers)
	add("winner", 1, sum(e.winner, extending))
	if o.Workers > 1 {
		add("loser", o.Workers-1, sum(e.loser, standingBy))
	}
	e.trim = e.prices.of(trims)
	add("trimming", 0, share)
	total := add("all", o.Workers, sum(e.claims(), extending, times(standingBy, n-1), share))

	// The holder replaces the document of a lock, and the others read it, all perhaps in the same second.
	renew := sum(e.prices.renewal, times(e.prices.look, n-1))
	e.days = []day{
		{"slotlease", times(total, e.slotsPerDay), e.peak()},
		{"roster", times(e.prices.presence, n*perDay(t.PresenceEvery())), n * e.prices.presence[inUnits]},
		{"page", times(e.prices.page(), perDay(seen)), e.prices.page()[inUnits]},
		{"renewing", times(renew, perDay(renewal)), renew[inUnits]},
	}
	if e.kind.requests == nil {
		ask, decide := original(n, e.reads())
		e.days = append(e.days, day{"original", times(sum(ask, decide), e.slotsPerDay), e.inSecond(max(ask[inUnits], decide[inUnits]))})
	}
	if o.Unbilled {
		for i := range e.days {
			e.days[i].cost[inUnits], e.days[i].peak = 0, 0
		}
	}
	return e
}

// reads is what a read costs, in reads at session consistency.
func (o Options) reads() float64 {
	if o.Consistency == Strong || o.Consistency == BoundedStaleness {
		return 2
	}
	return 1
}

// peak are the request units of the worst second before a boundary, without trimming.
// All workers have one priority, so that they are spread over one turn: the winner at its
// start, the others from the first to the last place that may be drawn. Where these are more than
// a second apart it is the mean, and chance makes some seconds busier.
func (e Estimate) peak() float64 {
	others := e.prices.of(e.loser)[inUnits] * float64(e.Workers-1)
	if spread := e.spread(); spread > time.Second {
		others *= float64(time.Second) / float64(spread)
	}
	return e.inSecond(e.prices.of(e.winner)[inUnits] + others)
}

// spread is how far apart the places are of those who didn't have the slot before.
func (e Estimate) spread() time.Duration {
	tie := e.Timing.Options.TieBreak
	return e.turns.Offset(0, tie, false, math.MaxUint64) - e.turns.Offset(0, tie, false, 0)
}

// inSecond are the request units of the worst second, given those of one slot, or of the
// end of one part of it.
func (e Estimate) inSecond(units float64) float64 {
	return units * max(1, float64(time.Second)/float64(min(e.Timing.ShortestSlot, e.parts.length)))
}

// overLead are the request units per second over the lead, without trimming.
func (e Estimate) overLead() float64 {
	return e.prices.of(e.claims())[inUnits] / max(e.turns.Lead.Seconds(), time.Millisecond.Seconds())
}

// claims are the operations of all workers in a slot, without trimming.
func (e Estimate) claims() operations { return sum(e.winner, times(e.loser, float64(e.Workers-1))) }

// perDay is how many of something there are a day.
func perDay(d time.Duration) float64 { return float64(24*time.Hour) / float64(d) }

// meanSlot is the mean length of the slots of a year, or of four if they are few.
func meanSlot(s slots.Schedule) time.Duration {
	from := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	n, last := 0, from
	for slot := range slots.Upcoming(s, from) {
		years := slot.Start.Sub(from).Hours() / 24 / 365
		if years > 4 || years > 1 && n >= 366 {
			break
		}
		if n == 0 {
			from = slot.Start
		}
		n, last = n+1, slot.End
	}
	return cmp.Or(last.Sub(from)/time.Duration(max(n, 1)), slots.MaxInterval)
}
