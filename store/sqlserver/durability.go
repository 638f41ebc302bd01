//go:build sqlserver

package sqlserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// untested ends each sentence about durability until the suite has been run on a real server: see the package's
// documentation.
const untested = " Untested: this store was never run on a real server."

// durability is what survives. What would lose records in a crash is refused: DELAYED_DURABILITY = FORCED.
func (f *facts) durability() store.Durability {
	return store.Durability{
		Crash:    "All records survive: each is in the log before its append returns.",
		Power:    "All records survive: each is on the disk before its append returns, unless the disk lies.",
		Failover: f.failover(),
	}
}

func (f *facts) failover() string {
	switch {
	case f.hosted():
		return "Within the region all records survive: a majority of the copies has each before its append returns. A copy in another region lags, and lacks the newest records after a forced failover."
	case !f.grouped() && f.clustered():
		return "All records survive: another machine of the failover cluster takes over with the same disks. A copy by log shipping, replication or asynchronous mirroring lacks the newest records."
	case !f.grouped():
		return "There is no failover that is known of; a copy by log shipping, replication or asynchronous mirroring lacks the newest records."
	case len(f.copies) == 0:
		return "The user may not know the availability group's replicas: one that commits asynchronously lacks the newest records, and two workers may then hold one slot."
	case f.asynchronous() != nil:
		return "A replica that commits asynchronously lacks the newest records when it takes over by force: " + strings.Join(f.asynchronous(), ", ") + "."
	case f.alone():
		return "Synchronous replicas have each record before its append returns, unless none answers: then the primary goes on alone, and a forced failover loses the newest records."
	}
	return fmt.Sprintf("At least %s of the synchronous replicas have each record before its append returns, and without them no append succeeds: only one that isn't synchronized, and takes over by force, lacks the newest records.", f.values[valueGroupCommit])
}

// asynchronous names the replicas that may lack what was acknowledged; nil if there are none.
func (f *facts) asynchronous() (names []string) {
	for _, r := range f.copies {
		if r.availability == "ASYNCHRONOUS_COMMIT" {
			names = append(names, r.name)
		}
	}
	slices.Sort(names)
	return names
}

// alone reports whether the primary goes on when no synchronous replica answers.
func (f *facts) alone() bool {
	n := f.values[valueGroupCommit]
	return n == "" || n == "0"
}

// durabilityFlaws are what could lose acknowledged records. What is refused isn't here.
func (f *facts) durabilityFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckDurability}
	if f.values[valuePageVerify] == "NONE" {
		flaws.Add("ALTER DATABASE … SET PAGE_VERIFY CHECKSUM", "pages are read without a check (PAGE_VERIFY is NONE): a disk may spoil the ledger without a word")
	}
	if !f.grouped() || f.hosted() {
		return flaws.All
	}
	switch names := f.asynchronous(); {
	case len(f.copies) == 0:
		flaws.Add("look at sys.availability_replicas as an administrator, or GRANT VIEW ANY DEFINITION", "whether the availability group commits synchronously isn't known: the user may not see its replicas")
	case len(names) > 0:
		flaws.Add("use SYNCHRONOUS_COMMIT, or never fail over to them by force", "replicas commit asynchronously (%.200s): a failover to one may lose the newest records, and two workers may then hold one slot", strings.Join(names, ", "))
	case f.alone():
		flaws.Add("set REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT to 1 or more, or never fail over by force", "the primary goes on alone when no synchronous replica answers: a forced failover may then lose the newest records")
	}
	return flaws.All
}
