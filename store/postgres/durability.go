package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// reload lets a setting last and count.
const reload = ", then SELECT pg_reload_conf()"

// waitForAll lets each standby have what is acknowledged.
const waitForAll = "ALTER SYSTEM SET synchronous_standby_names = 'FIRST n (…)' with all n that may take over, on each server" + reload

// durabilityFlaws are what could lose acknowledged records, or keep appends waiting.
func (l *Ledger) durabilityFlaws(f *facts) []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckDurability}
	if f.Fsync == "off" {
		flaws.Add("ALTER SYSTEM SET fsync = on"+reload, "fsync is off: a crash of the machine may lose or spoil the ledger")
	}
	if f.FullPages == "off" {
		flaws.Add("ALTER SYSTEM SET full_page_writes = on"+reload+", unless the file system never writes a part of a page", "full_page_writes is off: a crash of the machine may spoil the ledger")
	}
	sync := synchronous(f.SyncNames)
	switch {
	case f.SyncNames == "" && l.core.Copied():
		flaws.Add(waitForAll,
			"no standby is synchronous: a failover may lose the newest records, and two workers may then hold one slot")
	case f.SyncNames != "" && !sync.all():
		flaws.Add(waitForAll+"; or let the most advanced of all standbys take over, each time", "synchronous_standby_names is %.200s: an append is acknowledged when %s it, and if another takes over, the newest records are lost, and two workers may then hold one slot", f.SyncNames, sync.quorum())
	}
	if f.SyncNames != "" && f.SyncStandbys == 0 {
		flaws.Add("start a standby that synchronous_standby_names names", "no synchronous standby is connected: appends and reads wait for one of %.200s", f.SyncNames)
	}
	return flaws.All
}

// surviving reports that all that is acknowledged is on each standby that the server may be replaced by.
func (f *facts) surviving() bool { return f.SyncNames != "" && synchronous(f.SyncNames).all() }

// syncRule is what synchronous_standby_names says.
type syncRule struct {
	needed int
	names  []string
}

var syncList = regexp.MustCompile(`(?is)^\s*(?:(?:FIRST|ANY)\s+)?([0-9]+)\s*\((.*)\)\s*$`)

// synchronous reads synchronous_standby_names: a list of names, of which one is waited for, or a number and a list.
func synchronous(setting string) syncRule {
	r := syncRule{needed: 1}
	if found := syncList.FindStringSubmatch(setting); found != nil {
		r.needed, _ = strconv.Atoi(found[1])
		setting = found[2]
	}
	for name := range strings.SplitSeq(setting, ",") {
		r.names = append(r.names, strings.TrimSpace(name))
	}
	return r
}

// all reports that each of the standbys is waited for. The name * is any number of them.
func (r syncRule) all() bool { return r.needed >= len(r.names) && !r.any() }

func (r syncRule) any() bool {
	return slices.ContainsFunc(r.names, func(n string) bool { return strings.Trim(n, `"`) == "*" })
}

// quorum says how many standbys have what is acknowledged.
func (r syncRule) quorum() string {
	has := map[bool]string{true: "has", false: "have"}[r.needed == 1]
	if r.any() {
		return fmt.Sprintf("any %d of the standbys %s", r.needed, has)
	}
	return fmt.Sprintf("%d of %d standbys %s", r.needed, len(r.names), has)
}

// durability says what survives.
func (l *Ledger) durability(f *facts) store.Durability {
	d := store.Durability{
		Crash: "All survive: a commit is in the log on disk before an append is acknowledged.",
		Power: "All survive, if the disk keeps what it was told to sync: a commit is synced before an append is acknowledged.",
	}
	switch {
	case f.Fsync == "off":
		d.Power = "The newest may be lost, or the whole ledger spoiled: fsync is off."
	case f.FullPages == "off":
		d.Power = "All survive, if the file system never writes a part of a page: full_page_writes is off."
	}
	switch sync := synchronous(f.SyncNames); {
	case f.surviving():
		d.Failover = "All survive on the standbys that synchronous_standby_names names: an append is acknowledged when each of them has it."
	case f.SyncNames != "":
		d.Failover = fmt.Sprintf("The newest may be lost, unless the most advanced of all standbys takes over: an append is acknowledged when %s it.", sync.quorum())
	case l.core.Copied():
		d.Failover = "The newest may be lost: no standby is synchronous."
	default:
		d.Failover = "No standby was seen: one that takes over all the same, or a backup that is restored, lacks the newest."
	}
	return d
}
