package doctor

import (
	"cmp"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/store/mysql"
	"github.com/slotlease/slotlease/store/postgres"
	"github.com/slotlease/slotlease/store/redis"
	"github.com/slotlease/slotlease/store/sqlite"
)

// The checks that need nothing but a ledger. The stores have the others.
const (
	checkClock       = "clock"
	checkNTP         = "ntp"
	checkRoundTrips  = "round-trips"
	checkLength      = "ledger-length"
	checkWorkerTypes = "worker-types"
	checkHead        = "head"
	checkOrders      = "orders"
	checkUnreachable = "unreachable-records"
	checkSchedules   = "schedules"
	checkWorkers     = "workers"
	checkClocks      = "worker-clocks"
	checkHints       = "hints"
)

// generic are the checks that this package makes.
var generic = []string{checkClock, checkNTP, checkRoundTrips, checkLength, checkWorkerTypes, checkHead, checkOrders, checkUnreachable, checkSchedules, checkWorkers, checkClocks, checkHints}

// Check is one check, for the help.
type Check struct {
	Name string
	// Of are the stores that have it; empty for all.
	Of string
	// Asks is what it finds out.
	Asks string
}

// Checks are all checks, in the order in which they are shown: those of registered stores come before those that need
// nothing but a ledger.
func Checks() []Check {
	all := slices.Clone(checks)
	at := slices.IndexFunc(all, func(c Check) bool { return c.Name == checkClock })
	for _, scheme := range store.Schemes() {
		d, _ := store.DriverOf(scheme + ":")
		for _, c := range d.Checks {
			if !slices.ContainsFunc(all, func(known Check) bool { return known.Name == c.Name }) {
				all = slices.Insert(all, at, Check{c.Name, scheme, c.Asks})
				at++
			}
		}
	}
	return all
}

// checks are those of this package, and of the stores that each leasectl has. Those of the clouds are named here by hand: a
// leasectl with the tag lite doesn't link their packages.
var checks = []Check{
	{store.CheckConnection, "", "does the store answer?"},
	{store.CheckTLS, "all but SQLite", "is the connection encrypted, and the server verified?"},
	{store.CheckLedger, "", "is the ledger there: did leasectl init run?"},
	{store.CheckAppend, "", "may this user claim slots?"},
	{store.CheckRead, "", "may it read the ledger?"},
	{store.CheckTrim, "", "may it delete old records?"},
	{store.CheckRoster, "", "may it write what workers say of themselves?"},
	{store.CheckExpiry, "all but SQLite", "does anything delete the newest record by itself?"},
	{store.CheckConstraints, "", "does an index, a policy or a trigger of others keep records out?"},
	{mongo.CheckCollection, "MongoDB", "is it a plain collection: not capped, without a validator?"},
	{mongo.CheckSharding, "MongoDB", "do all records of a key meet on one shard?"},
	{mongo.CheckConcerns, "MongoDB", "what do writes and reads wait for, whatever the URI says?"},
	{mongo.CheckHints, "MongoDB", "does the server say at once that a lease was released?"},
	{mongo.CheckReplicaSet, "MongoDB", "is there a primary, and do all members answer?"},
	{"partition-key", "Cosmos DB", "are the records of a worker type in one partition?"},
	{"indexing", "Cosmos DB", "do queries find all that was written?"},
	{"regions", "Cosmos DB, Azure Blob", "does one region alone take writes?"},
	{"consistency", "Cosmos DB", "may reads be stale?"},
	{sqlite.CheckFileSystem, "SQLite", "can all workers share the file and its log?"},
	{sqlite.CheckJournal, "SQLite", "is it in WAL mode, and synced?"},
	{postgres.CheckServer, "PostgreSQL, MySQL", "does it keep a ledger's promises, and take writes?"},
	{postgres.CheckPooler, "PostgreSQL", "does a pooler leave transactions whole?"},
	{mysql.CheckProxy, "MySQL", "does a proxy send reads elsewhere?"},
	{postgres.CheckTable, "PostgreSQL, MySQL", "is it an ordinary table with the right key?"},
	{redis.CheckVersion, "Redis", "is the server new enough?"},
	{redis.CheckPrimary, "Redis", "is it the primary, and the only one that the URI leads to?"},
	{redis.CheckEviction, "Redis", "may the server delete records for want of memory?"},
	{"condition", "S3, Azure Blob", "does the service heed If-None-Match?"},
	{"versions", "S3", "does it keep what is deleted?"},
	{"immutability", "Azure Blob", "may old records be deleted?"},
	{postgres.CheckDurability, "PostgreSQL, MySQL, Redis", "does an acknowledged record survive?"},
	{store.CheckServerClocks, "", "do the clocks of the store's servers agree?"},
	{checkClock, "", "how far is this machine's clock from the store's, and can it lead?"},
	{checkNTP, "", "does the kernel say that this clock is synchronised?"},
	{checkRoundTrips, "", "how long does a read take, beside the lead?"},
	{checkHints, "", "may workers here hear at once that a lease is free?"},
	{checkLength, "", "does anybody trim the ledgers?"},
	{checkWorkerTypes, "", "are the names valid, and do they differ in more than case?"},
	{checkHead, "", "can workers obey the newest record, and claim after it?"},
	{checkOrders, "", "does an operator's order keep workers from claiming?"},
	{checkUnreachable, "", "are there records that nobody can reach?"},
	{checkSchedules, "", "do all workers of a type have the same slots?"},
	{checkWorkers, "", "are the workers of the roster there?"},
	{checkClocks, "", "are the clocks of the workers right?"},
}

// sorted are findings in the order of Checks, those that it doesn't have before the generic ones. Of two of one check, the worse one stays.
func sorted(found []store.Finding) []store.Finding {
	order := map[string]int{}
	unknown := 0 // of a store that doesn't say which checks it makes
	for i, c := range Checks() {
		order[c.Name] = 2 * i
		if c.Name == checkClock {
			unknown = 2*i - 1
		}
	}
	place := func(check string) int {
		if at, ok := order[check]; ok {
			return at
		}
		return unknown
	}
	bad := map[store.Level]int{store.LevelFail: -3, store.LevelWarn: -2, store.LevelSkip: -1}
	slices.SortStableFunc(found, func(a, b store.Finding) int {
		return cmp.Or(place(a.Check)-place(b.Check), cmp.Compare(a.Check, b.Check), bad[a.Level]-bad[b.Level])
	})
	return slices.CompactFunc(found, func(a, b store.Finding) bool { return a.Check == b.Check })
}
