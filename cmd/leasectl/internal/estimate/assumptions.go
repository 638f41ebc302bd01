package estimate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// assumptions are the assumptions of an estimate, one a line.
func (e Estimate) assumptions() []string {
	switch {
	case e.tariff.kinds != nil:
		return e.requests()
	case e.Unbilled:
		return e.unbilled()
	}
	texts := []string{
		steady,
		fmt.Sprintf("All workers have one priority, and claim within one step of %v.", e.turns.Step),
		"Records of 1 KB: metadata comes on top. One region: each further one charges the writes again.",
		fmt.Sprintf("A write or a delete: %g RU and %g for each term of the index; a point read: %g RU (%s).",
			writeUnits, termUnits, readUnits, unitsPage),
		fmt.Sprintf("A query in one partition: %g RU, Microsoft's sample of one that returns a document; strong and bounded-staleness double what reads cost (%s).",
			queryUnits, readsPage),
		fmt.Sprintf("A replacement is a delete and a write. Terms of the index: 2 for a record (1 with mongo), %d that a renewal changes; for the original, %d of a request and %d that the winner changes.",
			renewedTerms, requestTerms, wonTerms),
		"A trim is two queries, a read of each id, and a delete for each record; with mongo, one request deletes them all. REQUESTS counts them one by one.",
	}
	if e.Store == Mongo {
		texts = append(texts, fmt.Sprintf("Hello: %g RU; none is published.", readUnits), notCounted)
	} else {
		texts = append(texts,
			"A query of the time alone costs as much as one of a document; none is published.",
			"Not counted: each worker reads the account and the container every 10 minutes, and the SDK the account every 5: at most 576 requests a day. Those are for metadata, with a limit of their own.")
	}
	return append(texts, e.roster(), renewing, original)
}

// unbilled are the assumptions about the counts, which are all that there is.
func (e Estimate) unbilled() []string {
	return []string{
		steady,
		fmt.Sprintf("A replica set of %d members: NOW is a hello to each, at the same time, to compare their clocks. REQUESTS counts each.", electable),
		"A trim is two queries, a read of each id, and one request that deletes all. REQUESTS counts them one by one.",
		notCounted,
		"No request units: MongoDB bills none. For Azure Cosmos DB for MongoDB (RU), name its host: --store mongodb://ACCOUNT" + RequestUnitHosts[0] + "/.",
		e.roster(), renewing, original,
	}
}

// requests are the assumptions about requests of several kinds.
func (e Estimate) requests() []string {
	texts := []string{steady}
	if short := e.tooShort(); short != "" {
		texts = append(texts, short)
	}
	switch e.Store {
	case S3:
		texts = append(texts,
			"An append is a put, a tail a list and two gets, a look at the time a head, and a trim two lists and a delete for each record.",
			"Not counted: each worker puts an object when it starts, and gets the bucket's lifecycle rules and versioning every 10 minutes: at most 288 gets a day.")
	case AzureBlob:
		texts = append(texts,
			"An append is a write, a tail a list and two reads, a look at the time an other operation, and a trim a list, one more for each 5,000 records, and a delete for each that goes.",
			"Not counted: each worker writes a blob when it starts, and takes three other operations every 10 minutes: at most 432 a day.")
	case Kubernetes:
		texts = append(texts,
			"An append is a create, a tail a list, a look at the time a get of the API server's version, and a trim a list, one more for each 1,000 records, and a delete for each that goes.",
			"Not counted: each worker gets the namespace every 10 minutes, at most 144 times a day, and keeps a watch if it has FailoverWithin.",
			"Bytes are those of the objects. etcd keeps each of their versions until the API server compacts it, every 5 minutes by default.")
	}
	texts = append(texts, fmt.Sprintf("The store's clock shows whole seconds. So a slot loses seconds at its ends, and in slots below %v the winner looks at the time once more, which is counted. Slots of less than 5s take more than this.", poorly))
	if e.tariff.priced() {
		where := fmt.Sprintf("Prices (%s, %s, %s): %s.", e.tariff.region, e.tariff.date, e.tariff.source, e.tariff.list())
		if len(e.Options.Prices) > 0 {
			where += " Yours: " + changed(e.Options.Prices) + "."
		}
		if basis := e.tariff.rests(e.Options.Prices); basis != "" {
			where += " " + basis + " Give those of your region (--price)."
		}
		texts = append(texts, where+" A month has 730 hours. Data that leaves the region costs more.")
	} else {
		texts = append(texts, "No prices: these requests aren't billed. They load the API servers, and etcd below them.")
	}
	return append(texts, e.roster(), renewing)
}

// roster is what is assumed of the roster.
func (e Estimate) roster() string {
	return fmt.Sprintf("The roster: each worker replaces its document every %v, and 10s later at the earliest when something has changed, which isn't counted; nothing with --no-roster.", e.Timing.PresenceEvery())
}

const (
	steady     = "A steady state: no races, nothing fails, nobody comes or goes."
	notCounted = "Not counted: each worker looks at the collection once an hour, with mongos at the shard key every 4 minutes, and the driver at the servers."
	original   = "The original, EShopWorld.WorkerProcess on Cosmos DB for NoSQL: in each slot each worker queries the lease, creates a request for it, and queries who won; the winner replaces the lease. The deletion of the requests by their TTL isn't counted."
)

var renewing = fmt.Sprintf("Renewing: the holder replaces a lock document every %v, and the others read it.", renewal)

// RequestUnitHosts are the ends of the names of the hosts of Azure Cosmos DB for MongoDB that bill
// request units. The hosts of its vCore clusters end otherwise
// (https://learn.microsoft.com/azure/cosmos-db/mongodb/connect-account).
var RequestUnitHosts = []string{".mongo.cosmos.azure.com", ".documents.azure.com"}

// wrapped is a text as an item of a list, in lines that fit a terminal.
func wrapped(text string) string {
	const width = 80
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString("- ")
			column = 2
		case column+1+n > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}
