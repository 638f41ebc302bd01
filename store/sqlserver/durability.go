//go:build sqlserver

package sqlserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var (
	_ store.Warner  = (*Ledger)(nil)
	_ store.Durable = (*Ledger)(nil)
)

// Warning says what could lose acknowledged records although the server is used, as of the last check, which is made
// at the first use and again every 10 min; it is empty if there is nothing. It asks nobody.
func (l *Ledger) Warning() string {
	f := l.known.Load()
	if f == nil {
		return ""
	}
	var all []string
	for _, flaw := range f.durabilityFlaws() {
		all = append(all, flaw.Error())
	}
	return strings.Join(all, "; ")
}

// untested ends each sentence about durability until the suite has been run on a real server: see the package's
// documentation.
const untested = " (Untested: this store was never run on a real server.)"

// Durability is what survives, as of the last check, by the server's documentation.
func (l *Ledger) Durability() store.Durability {
	f := l.known.Load()
	if f == nil {
		const unknownYet = "Not known before the first use of the server."
		return store.Durability{Crash: unknownYet + untested, Power: unknownYet + untested, Failover: unknownYet + untested}
	}
	return store.Durability{Crash: f.crash() + untested, Power: f.power() + untested, Failover: f.failover() + untested}
}

// crash and power are the same with a forced delay, which is refused.
func (f *facts) crash() string {
	if f.values[valueDelayed] == "FORCED" {
		return "The newest records are lost (DELAYED_DURABILITY is FORCED)."
	}
	return "All records survive: each is in the log before its append returns."
}

func (f *facts) power() string {
	if f.values[valueDelayed] == "FORCED" {
		return "The newest records are lost (DELAYED_DURABILITY is FORCED)."
	}
	return "All records survive: each is on the disk before its append returns, unless the disk lies."
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
func (f *facts) durabilityFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckDurability, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	if f.values[valuePageVerify] == "NONE" {
		flaw("ALTER DATABASE … SET PAGE_VERIFY CHECKSUM", "pages are read without a check (PAGE_VERIFY is NONE): a disk may spoil the ledger without a word")
	}
	if !f.grouped() || f.hosted() {
		return flaws
	}
	switch names := f.asynchronous(); {
	case len(f.copies) == 0:
		flaw("look at sys.availability_replicas as an administrator, or GRANT VIEW ANY DEFINITION", "whether the availability group commits synchronously isn't known: the user may not see its replicas")
	case len(names) > 0:
		flaw("use SYNCHRONOUS_COMMIT, or never fail over to them by force", "replicas commit asynchronously (%.200s): a failover to one may lose the newest records, and two workers may then hold one slot", strings.Join(names, ", "))
	case f.alone():
		flaw("set REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT to 1 or more, or never fail over by force", "the primary goes on alone when no synchronous replica answers: a forced failover may then lose the newest records")
	}
	return flaws
}
