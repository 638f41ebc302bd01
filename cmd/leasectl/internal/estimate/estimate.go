// Package estimate works out what workers of one type will cost: operations and request
// units for each slot and each day, next to a lock that is renewed and to the original
// of this protocol. It is pure. Tests hold it against the engine and the stores.
package estimate

import (
	"cmp"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// The kinds of stores that bill, or may.
const (
	Cosmos = "cosmos"
	Mongo  = "mongo"
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
	Store       string // Cosmos, Mongo, S3, AzureBlob or Kubernetes
	Unbilled    bool   // the store bills no request units: Mongo, but for that of Azure Cosmos DB
	Consistency string
	Workers     int
	// Timing follows from the options of the workers.
	Timing workerlease.Timing
	// Slot is the length of the slots; 0: they differ, and the mean counts.
	Slot time.Duration
	// Prices are other prices than those published, in dollars, by PriceNames.
	Prices map[string]float64
}

// Estimate is the cost of workers of one type.
type Estimate struct {
	Options

	winner, loser operations
	slotsPerDay   float64
	parts         parts
	turns         priority.Turns
	rows          []row
	days          []day
	// trim is one trim, which comes at once.
	trim   cost
	prices prices
	tariff tariff
	kept   kept
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
	reads := 1.0
	if o.Consistency == Strong || o.Consistency == BoundedStaleness {
		reads = 2
	}
	slot := o.Slot
	if slot == 0 {
		slot = meanSlot(o.Timing.Options.Schedule)
	}
	t := o.Timing
	e := Estimate{
		Options: o, slotsPerDay: perDay(slot), tariff: tariffs[o.Store].with(o.Prices),
		turns: t.Turns(t.LeadAfter(t.ShortestSlot), 0),
	}
	e.parts = cut(t, slot, e.turns.Lead)
	between := time.Duration(float64(slot) / e.parts.n)
	e.kept = keeping(o, between)
	e.prices = pricesFor(o, reads, e.kept)
	e.winner, e.loser = e.parts.claims()
	extending, standingBy := e.parts.extending(), e.parts.standingBy()
	if e.prices.dated {
		e.winner, extending = dated(slot, e.winner, extending)
	}
	trims := trimming(t, between)
	share := trims.times(e.parts.n / float64(t.TrimEvery))
	add := func(who string, workers int, each operations) cost {
		r := row{who, workers, each, e.prices.of(each)}
		e.rows = append(e.rows, r)
		return r.cost
	}
	n := float64(o.Workers)
	add("winner", 1, e.winner.plus(extending))
	if o.Workers > 1 {
		add("loser", o.Workers-1, e.loser.plus(standingBy))
	}
	e.trim = e.prices.of(trims)
	add("trimming", 0, share)
	total := add("all", o.Workers, e.claims().plus(extending).plus(standingBy.times(n-1)).plus(share))

	renew := e.prices.renewing(n)
	e.days = []day{
		{"slotlease", total.times(e.slotsPerDay), e.peak()},
		{"roster", e.prices.presence.times(n * perDay(t.PresenceEvery())), n * e.prices.presence.Units},
		{"renewing", renew.times(perDay(renewal)), renew.Units},
	}
	if e.tariff.kinds == nil {
		ask, decide := e.prices.original(n)
		e.days = append(e.days, day{"original", ask.plus(decide).times(e.slotsPerDay), e.inSecond(max(ask.Units, decide.Units))})
	}
	if o.Unbilled {
		for i := range e.days {
			e.days[i].cost.Units, e.days[i].peak = 0, 0
		}
	}
	return e
}

// pricesFor are the prices of the store of an estimate.
func pricesFor(o Options, reads float64, k kept) prices {
	if tariffs[o.Store].kinds != nil {
		return requestsTo(o.Store, k.most())
	}
	p := pricesOf(o.Store, reads)
	if o.Unbilled {
		p = p.unbilled()
		p.now.Requests = electable
	}
	return p
}

// peak are the request units of the worst second before a boundary, without trimming.
// All workers have one priority, so that they are spread over one turn: the winner at its
// start, the others over its last three quarters. For a turn longer than a second it is
// the mean, and chance makes some seconds busier.
func (e Estimate) peak() float64 {
	others := e.prices.of(e.loser).Units * float64(e.Workers-1)
	if spread := e.turns.Step * 3 / 4; spread > time.Second {
		others *= float64(time.Second) / float64(spread)
	}
	return e.inSecond(e.prices.of(e.winner).Units + others)
}

// inSecond are the request units of the worst second, given those of one slot, or of the
// end of one part of it.
func (e Estimate) inSecond(units float64) float64 {
	return units * max(1, float64(time.Second)/float64(min(e.Timing.ShortestSlot, e.parts.length)))
}

// overLead are the request units per second over the lead, without trimming.
func (e Estimate) overLead() float64 {
	return e.prices.of(e.claims()).Units / max(e.turns.Lead.Seconds(), time.Millisecond.Seconds())
}

// claims are the operations of all workers in a slot, without trimming.
func (e Estimate) claims() operations { return e.winner.plus(e.loser.times(float64(e.Workers - 1))) }

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
