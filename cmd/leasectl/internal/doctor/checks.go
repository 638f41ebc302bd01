package doctor

import (
	"cmp"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/mongo"
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
	checkUnreachable = "unreachable-records"
	checkSchedules   = "schedules"
	checkWorkers     = "workers"
	checkClocks      = "worker-clocks"
)

// generic are the checks that this package makes.
var generic = []string{checkClock, checkNTP, checkRoundTrips, checkLength, checkWorkerTypes, checkHead, checkUnreachable, checkSchedules, checkWorkers, checkClocks}

// Check is one check, for the help.
type Check struct {
	Name string
	// Of are the stores that have it; empty for all.
	Of string
	// Asks is what it finds out.
	Asks string
}

// Checks are all checks, in the order in which they are shown.
var Checks = []Check{
	{store.CheckConnection, "", "does the store answer?"},
	{store.CheckTLS, "MongoDB, Cosmos DB", "is the connection encrypted, and the server verified?"},
	{store.CheckLedger, "", "is the ledger there: did leasectl init run?"},
	{store.CheckAppend, "", "may this user claim slots?"},
	{store.CheckRead, "", "may it read the ledger?"},
	{store.CheckTrim, "", "may it delete old records?"},
	{store.CheckRoster, "", "may it write what workers say of themselves?"},
	{store.CheckExpiry, "MongoDB, Cosmos DB", "does anything delete the newest record by itself?"},
	{store.CheckConstraints, "", "does an index, a policy or a trigger of others keep records out?"},
	{mongo.CheckCollection, "MongoDB", "is it a plain collection: not capped, without a validator?"},
	{mongo.CheckSharding, "MongoDB", "do all records of a key meet on one shard?"},
	{mongo.CheckConcerns, "MongoDB", "what do writes and reads wait for, whatever the URI says?"},
	{mongo.CheckReplicaSet, "MongoDB", "is there a primary, and do all members answer?"},
	{cosmos.CheckPartitionKey, "Cosmos DB", "are the records of a worker type in one partition?"},
	{cosmos.CheckIndexing, "Cosmos DB", "do queries find all that was written?"},
	{cosmos.CheckRegions, "Cosmos DB", "does one region alone take writes?"},
	{cosmos.CheckConsistency, "Cosmos DB", "may reads be stale?"},
	{sqlite.CheckFileSystem, "SQLite", "can all workers share the file and its log?"},
	{sqlite.CheckJournal, "SQLite", "is it in WAL mode, and synced?"},
	{store.CheckServerClocks, "", "do the clocks of the store's servers agree?"},
	{checkClock, "", "how far is this machine's clock from the store's, and can it lead?"},
	{checkNTP, "", "does the kernel say that this clock is synchronised?"},
	{checkRoundTrips, "", "how long does a read take, beside the lead?"},
	{checkLength, "", "does anybody trim the ledgers?"},
	{checkWorkerTypes, "", "are the names valid, and do they differ in more than case?"},
	{checkHead, "", "can workers obey the newest record, and claim after it?"},
	{checkUnreachable, "", "are there records that nobody can reach?"},
	{checkSchedules, "", "do all workers of a type have one schedule?"},
	{checkWorkers, "", "are the workers of the roster there?"},
	{checkClocks, "", "are the clocks of the workers right?"},
}

// sorted are findings in the order of Checks. Of two of one check, the worse one stays.
func sorted(found []store.Finding) []store.Finding {
	order := map[string]int{}
	for i, c := range Checks {
		order[c.Name] = i
	}
	bad := map[store.Level]int{store.LevelFail: -3, store.LevelWarn: -2, store.LevelSkip: -1}
	slices.SortStableFunc(found, func(a, b store.Finding) int {
		return cmp.Or(order[a.Check]-order[b.Check], bad[a.Level]-bad[b.Level])
	})
	return slices.CompactFunc(found, func(a, b store.Finding) bool { return a.Check == b.Check })
}
