package main

import (
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// operations are what is asked of a ledger, on average. A test holds them against
// the engine.
type operations struct {
	Now, Tail, Append, Get, Trim float64
	// Deleted is how many records the trims delete.
	Deleted float64
}

func (o operations) plus(p operations) operations {
	return operations{
		o.Now + p.Now, o.Tail + p.Tail, o.Append + p.Append,
		o.Get + p.Get, o.Trim + p.Trim, o.Deleted + p.Deleted,
	}
}

func (o operations) times(n float64) operations {
	return operations{o.Now * n, o.Tail * n, o.Append * n, o.Get * n, o.Trim * n, o.Deleted * n}
}

// winner and loser are what a worker asks for in a slot, in a steady state. In
// slots that are hardly longer than a second it is less: the last look at the
// time is still fresh.
func winner(slot, lead time.Duration) operations {
	o := loser(slot, lead)
	o.Append = 1
	return o
}

func loser(slot, lead time.Duration) operations {
	o := operations{Now: 1, Tail: 1}
	// Before a long wait ends, the first look comes earlier by how much the clocks
	// may have drifted apart, and there is another when the turn comes.
	if slot/drift > max(lead, time.Second) {
		o.Now = 2
	}
	return o
}

// drift is the rate at which clocks are taken to drift apart: 1 in 1000.
const drift = 1000

const (
	// trimEvery is how many records lie between two trims, and trimKeep how far
	// below its own record who trims looks first.
	trimEvery = 53
	trimKeep  = 100
)

// trimming is what one trim takes: it looks for a record older than the
// retention, twice as far back each time, and deletes what has gathered since the
// trim before. Between is the time from record to record.
func trimming(between time.Duration) operations {
	looks := 1.0
	for depth := time.Duration(trimKeep); depth*between < workerlease.DefaultRetention; depth *= 2 {
		looks++
	}
	return operations{Get: looks, Trim: 1, Deleted: trimEvery}
}

// cost is requests to a store, and what it charges for them.
type cost struct{ Requests, Units float64 }

func (c cost) plus(d cost) cost      { return cost{c.Requests + d.Requests, c.Units + d.Units} }
func (c cost) times(n float64) cost  { return cost{c.Requests * n, c.Units * n} }
func one(units float64) cost         { return cost{1, units} }
func perDay(d time.Duration) float64 { return float64(24*time.Hour) / float64(d) }

// What Microsoft publishes for documents of 1 KB and reads at session or weaker
// consistency, in request units.
const (
	// A write or a delete is 5, and 0.2 for each term of the index; a replacement is
	// a delete and a write, of the document and of the terms that change; a point
	// read is 1. Illustrative, as of 2026-04-21, for all APIs.
	unitsPage  = "https://learn.microsoft.com/azure/cosmos-db/understand-request-unit-consumption"
	writeUnits = 5.0
	termUnits  = 0.2
	readUnits  = 1.0

	// A query that loads and returns one document is 3.19, in a sample of the metrics
	// of queries. Strong consistency and bounded staleness double the cost of reads.
	readsPage  = "https://learn.microsoft.com/azure/cosmos-db/optimize-cost-reads-writes"
	queryUnits = 3.19
)

// write is a create or a delete in a container that indexes so many terms.
func write(terms float64) cost { return one(writeUnits + termUnits*terms) }

// prices are what the operations of a ledger cost in a kind of store.
type prices struct {
	now, tail, append, get, delete cost
	// trim is without what it deletes, of which it reads the ids first.
	trim, listed cost
	// reads is how much a read costs, measured by one at session consistency.
	reads float64
}

// pricesOf are the prices of a kind of store, whose reads cost one or two times
// what those at session consistency do.
func pricesOf(kind string, reads float64) prices {
	query, read := one(queryUnits*reads), one(readUnits*reads)
	p := prices{now: query, tail: query, get: read, listed: cost{0, readUnits * reads}, reads: reads}
	p.append, p.delete = write(2), write(2) // id, workerType
	p.trim = query.times(2)                 // the head, and the oldest
	if kind == kindMongo {
		p.now = one(readUnits)             // hello
		p.append = write(1)                // _id
		p.delete = cost{0, p.append.Units} // all of them are one request
		p.trim.Requests++
	}
	return p
}

// of is what operations cost.
func (p prices) of(o operations) cost {
	return p.now.times(o.Now).
		plus(p.tail.times(o.Tail)).
		plus(p.append.times(o.Append)).
		plus(p.get.times(o.Get)).
		plus(p.trim.times(o.Trim)).
		plus(p.listed.plus(p.delete).times(o.Deleted))
}

const (
	// renewal is how often the lock of a renew loop is renewed and looked at, as
	// client-go's leader election does by default.
	renewal = 2 * time.Second
	// renewedTerms and wonTerms are how many terms of the index change with a
	// renewal (when, until) and when the original's lease is taken (who, priority,
	// until, interval).
	renewedTerms = 2
	wonTerms     = 4
	// requestTerms are those of a request for the original's lease, all of which
	// are indexed: id, leaseType, instanceId, priority, ttl, and the time.
	requestTerms = 6
)

// replace is a replacement of a document in which so many terms change.
func replace(terms float64) cost { return one(2*writeUnits + 2*termUnits*terms) }

// renewing is a period of a renew loop: the holder replaces the lock document,
// the others read it. All may do so in one second.
func (p prices) renewing(workers float64) cost {
	return replace(renewedTerms).plus(one(readUnits * p.reads).times(workers - 1))
}

// original is a slot of EShopWorld.WorkerProcess: each worker queries the lease
// and creates a request for it, which the container's TTL deletes later; after a
// delay of some seconds each queries who won, and the winner replaces the lease.
func (p prices) original(workers float64) (ask, decide cost) {
	query := one(queryUnits * p.reads)
	ask = query.plus(write(requestTerms)).times(workers)
	decide = query.times(workers).plus(replace(wonTerms))
	return ask, decide
}
