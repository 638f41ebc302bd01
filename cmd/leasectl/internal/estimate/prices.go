package estimate

import "time"

// cost is requests to a store, its charges for them in request units, and, if a tariff has them, their kinds.
type cost struct {
	Requests, Units float64
	Kinds           perKind
}

func (c cost) plus(d cost) cost {
	return cost{c.Requests + d.Requests, c.Units + d.Units, c.Kinds.plus(d.Kinds)}
}
func (c cost) times(n float64) cost  { return cost{c.Requests * n, c.Units * n, c.Kinds.times(n)} }
func one(units float64) cost         { return cost{Requests: 1, Units: units} }
func perDay(d time.Duration) float64 { return float64(24*time.Hour) / float64(d) }

// Microsoft's published figures for documents of 1 KB and reads at session or weaker
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

// electable is how many members of a replica set can be elected: each of them is asked for its
// clock when the primary is. A standalone server is alone, and so is the one address of Azure
// Cosmos DB for MongoDB.
const electable = 3

// write is a create or a delete in a container that indexes a number of terms.
func write(terms float64) cost { return one(writeUnits + termUnits*terms) }

// prices are those of the operations of a ledger in a kind of store.
type prices struct {
	now, tail, append, get, delete cost
	// trim is without the records that it deletes; listed is the read of the id of one.
	trim, listed cost
	// presence is the replacement of a presence, renewal that of a lock, and look a read of one.
	presence, renewal, look cost
	// reads is the cost of a read, in reads at session consistency.
	reads float64
	// dated says that the store shows its time with appends, too, but in whole seconds.
	dated bool
}

// pricesOf are the prices of a kind of store. Its reads cost once or twice as much as
// those at session consistency.
func pricesOf(kind string, reads float64) prices {
	query, read := one(queryUnits*reads), one(readUnits*reads)
	p := prices{now: query, tail: query, get: read, listed: cost{Units: readUnits * reads}, reads: reads}
	p.presence, p.renewal, p.look = replace(0), replace(renewedTerms), one(readUnits*reads)
	p.append, p.delete = write(2), write(2) // id, workerType
	p.trim = query.times(2)                 // the head, and the oldest
	if kind == Mongo {
		p.now = one(readUnits)                 // hello, to the primary
		p.append = write(1)                    // _id
		p.delete = cost{Units: p.append.Units} // all of them are one request
		p.trim.Requests++
	}
	return p
}

// unbilled are the same requests, free of charge.
func (p prices) unbilled() prices {
	for _, c := range []*cost{&p.now, &p.tail, &p.append, &p.get, &p.delete, &p.trim, &p.listed, &p.presence, &p.renewal, &p.look} {
		c.Units = 0
	}
	return p
}

// of is the cost of operations.
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
	// renewedTerms and wonTerms are how many terms of the index change with a renewal
	// (when, until) and when the original's lease is taken (holder, priority, until,
	// interval).
	renewedTerms = 2
	wonTerms     = 4
	// requestTerms are those of a request for the original's lease, all of which
	// are indexed: id, leaseType, instanceId, priority, ttl, and the time.
	requestTerms = 6
)

// replace is a replacement of a document in which a number of terms change.
func replace(terms float64) cost { return one(2*writeUnits + 2*termUnits*terms) }

// renewing is a period of a renew loop: the holder replaces the lock document, and the
// others read it. All may do so in the same second.
func (p prices) renewing(workers float64) cost {
	return p.renewal.plus(p.look.times(workers - 1))
}

// original is a slot of EShopWorld.WorkerProcess: each worker queries the lease and
// creates a request for it, which the container's TTL deletes later. Some seconds later
// each queries for the winner, and the winner replaces the lease.
func (p prices) original(workers float64) (ask, decide cost) {
	query := one(queryUnits * p.reads)
	ask = query.plus(write(requestTerms)).times(workers)
	decide = query.times(workers).plus(replace(wonTerms))
	return ask, decide
}
