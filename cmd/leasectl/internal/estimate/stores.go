package estimate

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of stores that bill, or count requests.
const (
	Cosmos     = "cosmos"
	Mongo      = "mongo"
	S3         = "s3"
	AzureBlob  = "azblob"
	Kubernetes = "kubernetes"
)

// planned are the same, for messages.
const planned = "cosmos, mongo, s3, azblob or kubernetes"

// schemes are the kinds of the schemes of URIs.
var schemes = map[string]string{
	"cosmos": Cosmos, "mongo": Mongo, "mongodb": Mongo, "mongodb+srv": Mongo, "s3": S3, "azblob": AzureBlob, "kubernetes": Kubernetes, "k8s": Kubernetes,
}

// KindOf is the kind of a store that is named by it, by a URI, or not at all.
func KindOf(text string) (string, error) {
	scheme, _, _ := strings.Cut(text, ":")
	switch kind := schemes[scheme]; {
	case kind != "":
		return kind, nil
	case text == "":
		return "", errors.New("no store: name its kind, --store " + planned)
	case scheme == "sqlite":
		return "", errors.New("a SQLite file costs nothing: give --store " + planned)
	case strings.Contains(" postgres postgresql mysql mariadb sqlserver redis rediss redis+sentinel rediss+sentinel etcd etcds nats ", " "+scheme+" "):
		return "", errors.New("a server of your own bills no requests, so that there is nothing to estimate; give --store " + planned)
	}
	return "", errors.New("has no known kind: give --store " + planned)
}

// kind is what the estimate has to know of a kind of store.
type kind struct {
	requests []string // the kinds of requests that are told apart, in the order of their figures; nil: none, and it may bill units
	// floor is the least useful FailoverWithin, by default: the store knows the time too poorly for less. Of slots that are shorter
	// than shortest many are over before anybody can be sure that they have begun.
	floor, shortest time.Duration
	listsFrom       bool    // a list may begin at a name
	listsContent    bool    // a list shows what is in the objects
	page            float64 // the most that a list has
	roster          string  // without what there is no roster
	assumed         []string
}

// withoutRoster is how a worker keeps out of the roster where it is kept by default.
const withoutRoster = "with --no-roster"

var kinds = map[string]kind{
	Cosmos: {roster: withoutRoster, assumed: []string{
		"A query of the time alone costs as much as one of a document; none is published.",
		"Not counted: each worker reads the account and the container every 10 minutes, and the SDK the account every 5: at most 576 requests a day. Those are for metadata, with a limit of their own.",
	}},
	Mongo: {roster: withoutRoster, assumed: []string{fmt.Sprintf("Hello: %g RU; none is published.", readUnits), notCounted}},
	S3: {
		requests: []string{"put", "list", "get", "head", "delete"}, floor: 11 * time.Second, shortest: 4 * time.Second, page: 1000, listsFrom: true, roster: "without --roster",
		assumed: []string{
			"An append is a put, a tail a list and two gets, a look at the time a head, and a trim two lists and a delete for each record.",
			"Not counted: each worker puts an object when it starts, and gets the bucket's lifecycle rules and versioning every 10 minutes: at most 288 gets a day.",
		},
	},
	AzureBlob: {
		requests: []string{"write", "list", "read", "other", "delete"}, floor: 11 * time.Second, shortest: 4 * time.Second, page: 5000, roster: "without --roster",
		assumed: []string{
			"An append is a write, a tail a list and two reads, a look at the time an other operation, and a trim a list, one more for each 5,000 records, and a delete for each that goes.",
			"Not counted: each worker writes a blob when it starts, and takes three other operations every 10 minutes: at most 432 a day.",
		},
	},
	Kubernetes: {
		requests: []string{"create", "list", "get", "version", "delete", "update"}, floor: 6300 * time.Millisecond, shortest: 2 * time.Second, page: 1000, listsContent: true,
		roster: withoutRoster,
		assumed: []string{
			"An append is a create, a tail a list, a look at the time a get of the API server's version, and a trim a list, one more for each 1,000 records, and a delete for each that goes.",
			"Not counted: each worker gets the namespace every 10 minutes, at most 144 times a day, and keeps a watch if it has FailoverWithin.",
			"Bytes are those of the objects. etcd keeps each of their versions until the API server compacts it, every 5 minutes by default.",
			"These requests aren't billed. They load the API servers, and etcd below them.",
		},
	},
}

// Floor is the least useful FailoverWithin of a kind of store, or 0.
func Floor(store string) time.Duration { return kinds[store].floor }

// CountsRequests reports that a kind of store tells kinds of requests apart. It is read at one consistency level.
func CountsRequests(store string) bool { return kinds[store].requests != nil }

// tooShort says that slots are too short for the store; empty if they aren't.
func (e Estimate) tooShort() string {
	if least := e.kind.shortest; e.Timing.ShortestSlot < least {
		return fmt.Sprintf("Slots of less than %v are too short for this store: many are never worked.", least)
	}
	return ""
}

// poorly is the length of slots in which a worker that wins by a clock of whole seconds, and has waited for no more
// than a slot, looks at the time again before it appends.
const poorly = 20 * time.Second

const (
	steady     = "A steady state: no races, nothing fails, nobody comes or goes."
	notCounted = "Not counted: each worker looks at the collection once an hour, with mongos at the shard key every 4 minutes, and the driver at the servers."
)

// unitHosts are the ends of the names of the hosts of Azure Cosmos DB for MongoDB that bill
// request units. The hosts of its vCore clusters end otherwise
// (https://learn.microsoft.com/azure/cosmos-db/mongodb/connect-account).
var unitHosts = []string{".mongo.cosmos.azure.com", ".documents.azure.com"}

// BillsUnits reports that a MongoDB URI names a host that bills request units.
func BillsUnits(uri string) bool {
	_, after, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(after, "/?"); i >= 0 {
		after = after[:i]
	}
	for host := range strings.SplitSeq(after[strings.LastIndex(after, "@")+1:], ",") {
		host, _, _ = strings.Cut(strings.ToLower(host), ":")
		for _, end := range unitHosts {
			if strings.HasSuffix(host, end) {
				return true
			}
		}
	}
	return false
}

// assumptions are the assumptions of an estimate, one a line.
func (e Estimate) assumptions() []string {
	texts := []string{steady}
	switch {
	case e.kind.requests != nil:
		if short := e.tooShort(); short != "" {
			texts = append(texts, short)
		}
		texts = append(append(texts, e.kind.assumed...),
			fmt.Sprintf("The store's clock shows whole seconds. So a slot loses seconds at its ends, and in slots below %v the winner looks at the time once more, which is counted. Slots of less than 5s take more than this.", poorly))
	case e.Unbilled:
		texts = append(texts,
			fmt.Sprintf("A replica set of %d members: NOW is a hello to each, at the same time, to compare their clocks. REQUESTS counts each.", electable),
			"A trim is two queries, a read of each id, and one request that deletes all. REQUESTS counts them one by one.",
			notCounted,
			"No request units: MongoDB bills none. For Azure Cosmos DB for MongoDB (RU), name its host: --store mongodb://ACCOUNT"+unitHosts[0]+"/.")
	default:
		texts = append(append(texts,
			fmt.Sprintf("All workers have one priority, and claim within one step of %v.", e.turns.Step),
			"Records of 1 KB: metadata comes on top. One region: each further one charges the writes again.",
			fmt.Sprintf("A write or a delete: %g RU and %g for each term of the index; a point read: %g RU (%s).", writeUnits, termUnits, readUnits, unitsPage),
			fmt.Sprintf("A query in one partition: %g RU, Microsoft's sample of one that returns a document; strong and bounded-staleness double what reads cost (%s).", queryUnits, readsPage),
			fmt.Sprintf("A replacement is a delete and a write. Terms of the index: 2 for a record (1 with mongo), %d that a renewal changes; for the original, %d of a request and %d that the winner changes.",
				renewedTerms, requestTerms, wonTerms),
			"A trim is two queries, a read of each id, and a delete for each record; with mongo, one request deletes them all. REQUESTS counts them one by one.",
		), e.kind.assumed...)
	}
	texts = append(texts,
		fmt.Sprintf("The roster: each worker replaces its document every %v, and 10s later at the earliest when something has changed, which isn't counted; nothing %s.", e.Timing.PresenceEvery(), e.kind.roster),
		fmt.Sprintf("The page of leasectl serve, while anybody looks all day: every %v the time, the names, the roster and the newest %d records.", seen, seenRecords),
		fmt.Sprintf("Renewing: the holder replaces a lock document every %v, and the others read it.", renewal))
	if e.kind.requests == nil {
		texts = append(texts, "The original, EShopWorld.WorkerProcess on Cosmos DB for NoSQL: in each slot each worker queries the lease, creates a request for it, and queries who won; the winner replaces the lease. The deletion of the requests by their TTL isn't counted.")
	}
	return texts
}
