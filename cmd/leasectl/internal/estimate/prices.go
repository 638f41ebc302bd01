package estimate

import (
	"math"
	"time"
)

// cost is requests to a store: how many, the request units that it charges, and, if it tells kinds of requests apart, how many
// there are of each.
type cost [8]float64

// The figures of a cost. Those of kinds are in the order of their names.
const (
	inRequests = iota
	inUnits
	inPuts
	inLists
	inGets
	inDates
	inDeletes
	inUpdates // in Kubernetes alone: to the others a presence is put as a record is
)

// one is a request that costs some units.
func one(units float64) cost { return cost{inRequests: 1, inUnits: units} }

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

// write is a create or a delete in a container that indexes a number of terms, and replace a replacement of a document in which
// a number of them change.
func write(terms float64) cost   { return one(writeUnits + termUnits*terms) }
func replace(terms float64) cost { return one(2*writeUnits + 2*termUnits*terms) }

// seen is how often the page of leasectl serve looks while somebody looks at it, and seenRecords how many records it reads then.
const (
	seen        = time.Second
	seenRecords = 8
)

// prices are those of the operations of a ledger in a kind of store.
type prices struct {
	each [6]cost // by operation
	// presence is the replacement of a presence, renewal that of a lock, and look a read of one.
	presence, renewal, look cost
	// listing is a read of the names of worker types, of which there is one, and roster one of all presences; recent is a tail of
	// a few records.
	listing, roster, recent cost
}

// of is the cost of operations.
func (p prices) of(o operations) (total cost) {
	for i, price := range p.each {
		total = sum(total, times(price, o[i]))
	}
	return total
}

// page is the cost of a look of the page.
func (p prices) page() cost { return sum(p.each[opNow], p.listing, p.roster, p.recent) }

// pricesFor are the prices of the store of an estimate. A ledger in a store of objects has up to most records when it is trimmed.
func pricesFor(o Options, most float64) prices {
	if k := kinds[o.Store]; k.requests != nil {
		return k.requestsTo(most, float64(o.Workers))
	}
	p := pricesOf(o.Store, o.reads())
	if o.Unbilled {
		for _, c := range []*cost{&p.presence, &p.renewal, &p.look, &p.listing, &p.roster, &p.recent} {
			c[inUnits] = 0
		}
		for i := range p.each {
			p.each[i][inUnits] = 0
		}
		p.each[opNow][inRequests] = electable
	}
	return p
}

// pricesOf are the prices of a kind of store that bills request units, by the cost of a read.
func pricesOf(store string, reads float64) prices {
	query, read, listed := one(queryUnits*reads), one(readUnits*reads), cost{inUnits: readUnits * reads}
	p := prices{presence: replace(0), renewal: replace(renewedTerms), look: read}
	p.listing, p.roster, p.recent = times(query, 2), query, query
	p.each = [6]cost{
		opNow: query, opTail: query, opGet: read, opAppend: write(2), // id, workerType
		opTrim: times(query, 2), // the head, and the oldest
	}
	p.each[opDeleted] = sum(listed, p.each[opAppend])
	if store == Mongo {
		p.each[opNow] = one(readUnits) // hello, to the primary
		p.each[opAppend] = write(1)    // _id
		p.each[opDeleted] = cost{inUnits: listed[inUnits] + p.each[opAppend][inUnits]}
		p.each[opTrim][inRequests]++ // which deletes all of them
	}
	return p
}

// requestsTo are the requests of a store of objects, of which a ledger has up to most records when it is trimmed. In names of
// objects, the newest record is the first, and a trim lists what is older than a record. S3 begins a list at a name; Azure and
// Kubernetes pass over what comes before it, a page at a time.
func (k kind) requestsTo(most, workers float64) prices {
	asking := func(of int, n float64) (c cost) {
		c[inRequests], c[of] = n, n
		return c
	}
	put, get := asking(inPuts, 1), asking(inGets, 1)
	list := asking(inLists, 1)
	p := prices{presence: put, renewal: put, look: get, listing: times(list, 2)}
	p.recent, p.roster = sum(list, times(get, seenRecords)), sum(list, times(get, workers))
	// A worker reads two records, to see whether the head contradicts the one below it.
	read := sum(list, asking(inGets, 2))
	if k.listsContent {
		read, p.recent, p.roster, p.listing = list, list, list, times(list, 4)
		p.presence, p.renewal = asking(inUpdates, 1), asking(inUpdates, 1)
	}
	if k.listsFrom {
		most = 1 // Those that are deleted fit into one list.
	}
	p.each = [6]cost{
		opNow: asking(inDates, 1), opTail: read, opAppend: put, opGet: get, opDeleted: asking(inDeletes, 1),
		opTrim: asking(inLists, 1+math.Ceil(most/k.page)),
	}
	return p
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

// original is a slot of EShopWorld.WorkerProcess: each worker queries the lease and
// creates a request for it, which the container's TTL deletes later. Some seconds later
// each queries for the winner, and the winner replaces the lease.
func original(workers, reads float64) (ask, decide cost) {
	query := one(queryUnits * reads)
	return times(sum(query, write(requestTerms)), workers), sum(times(query, workers), replace(wonTerms))
}

// Kept is what a store of objects keeps. Its names in JSON don't change.
type Kept struct {
	Records   float64 `json:"records"`       // when a trim has been
	AtMost    float64 `json:"recordsAtMost"` // before one
	Presences float64 `json:"presences"`
	Bytes     float64 `json:"bytes"` // in the mean
}

// The sizes of documents of workers with short names, without metadata, as tests measure them, in bytes. In Kubernetes the object
// is around it, as etcd has it.
const recordBytes, presenceBytes, kubernetesBytes = 550, 400, 500

// keeping are what workers leave of records that come at a distance.
func keeping(o Options, between time.Duration) Kept {
	depth := o.Timing.TrimKeep
	for time.Duration(depth)*between < o.Timing.Options.Retention {
		depth *= 2
	}
	around := 0.0
	if o.Store == Kubernetes {
		around = kubernetesBytes
	}
	k := Kept{Records: float64(depth) + 1, AtMost: float64(depth + o.Timing.TrimEvery), Presences: float64(o.Workers)}
	k.Bytes = math.Round((k.Records+k.AtMost)/2*(recordBytes+around) + k.Presences*(presenceBytes+around))
	return k
}
