package mysql

import (
	"fmt"
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

// Durability is what survives, as of the last check.
func (l *Ledger) Durability() store.Durability {
	f := l.known.Load()
	if f == nil {
		return store.Durability{Crash: unknownYet, Power: unknownYet, Failover: unknownYet}
	}
	return store.Durability{Crash: f.crash(), Power: f.power(), Failover: f.failover()}
}

const unknownYet = "Not known before the first use of the server."

// flushes is innodb_flush_log_at_trx_commit: 1 writes and syncs the log with each commit, 2 writes it, 0 neither, and
// MariaDB's 3 syncs twice.
func (f *facts) flushes() string { return f.variables["innodb_flush_log_at_trx_commit"] }

func (f *facts) crash() string {
	switch {
	case f.flushes() == "0" && f.galera():
		return "All records survive the end of one server's process, as other nodes have them; if all end at once, those of the last second are lost."
	case f.flushes() == "0":
		return "The records of the last second are lost (innodb_flush_log_at_trx_commit is 0)."
	}
	return "All records survive: each is in the log before its append returns."
}

func (f *facts) power() string {
	switch flushed := f.flushes() == "1" || f.flushes() == "3"; {
	case flushed && f.binlogUnsynced() && !f.galera():
		return "The newest records are lost: the server rolls back what its binary log lacks (sync_binlog isn't 1)."
	case flushed:
		return "All records survive: each is on the disk before its append returns, unless the disk lies."
	case f.galera():
		return "All records survive on other nodes; if all lose power at once, those of the last second are lost (innodb_flush_log_at_trx_commit isn't 1)."
	}
	return "The records of the last second are lost (innodb_flush_log_at_trx_commit isn't 1)."
}

func (f *facts) failover() string {
	switch {
	case f.galera():
		return "Other nodes have each record before its append returns; where one reads, it has all that were acknowledged."
	case f.group():
		return "A majority of the group has each record before its append returns; a new primary is read when it has all of them."
	case f.semiSync() && f.semiSyncAfterCommit():
		return "A replica has each record before its append returns while semi-synchronous replication is in force, but others may have read it sooner."
	case f.semiSync():
		return fmt.Sprintf("A replica has each record before its append returns, unless none answers for %v ms: then the server goes on without, and a failover loses the newest.", f.semiSyncTimeout())
	case f.replicas() > 0:
		return "A replica that takes over may lack the newest records: replication is asynchronous."
	}
	return "There is no failover that is known of; a replica that takes over would lack the newest records, unless replication is semi-synchronous."
}

// semiSync reports whether commits wait for a replica, now.
func (f *facts) semiSync() bool {
	return first(f.status, "rpl_semi_sync_source_status", "rpl_semi_sync_master_status") == "ON"
}

// semiSyncAfterCommit reports whether others see a record before a replica has it.
func (f *facts) semiSyncAfterCommit() bool {
	return first(f.variables, "rpl_semi_sync_source_wait_point", "rpl_semi_sync_master_wait_point") == "AFTER_COMMIT"
}

// semiSyncTimeout is how long a commit waits for a replica, in ms.
func (f *facts) semiSyncTimeout() int64 {
	return number(first(f.variables, "rpl_semi_sync_source_timeout", "rpl_semi_sync_master_timeout"))
}

// binlogUnsynced reports whether a loss of power may cut the binary log short. By this log the server decides, when it
// is started again, which transactions it commits: https://dev.mysql.com/doc/refman/8.4/en/binary-log.html
func (f *facts) binlogUnsynced() bool {
	return f.variables["log_bin"] == "ON" && f.variables["sync_binlog"] != "1"
}

// patientSemiSync is the least timeout of semi-synchronous replication, in ms, that keeps a server from going on alone.
const patientSemiSync = 3_600_000

// durabilityFlaws are what could lose acknowledged records, or keep appends waiting.
func (f *facts) durabilityFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckDurability, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	v := f.variables
	if flush := f.flushes(); flush != "1" && flush != "3" && flush != "" {
		flaw("set it to 1", "innodb_flush_log_at_trx_commit is %s: %s loses the records of the last second, and two workers may then hold one slot", flush,
			map[bool]string{true: "a crash of the server", false: "a loss of power"}[flush == "0"])
	}
	if v["innodb_doublewrite"] == "OFF" || v["innodb_doublewrite"] == "DETECT_ONLY" {
		flaw("turn innodb_doublewrite on, unless the file system never writes a part of a page", "innodb_doublewrite is %s: a loss of power may spoil the ledger", v["innodb_doublewrite"])
	}
	if strings.EqualFold(v["innodb_flush_method"], "nosync") || strings.EqualFold(v["innodb_flush_method"], "littlesync") {
		flaw("use another one", "innodb_flush_method is %s: a loss of power may spoil the ledger", v["innodb_flush_method"])
	}
	if f.binlogUnsynced() {
		flaw("set it to 1", "sync_binlog is %s: a loss of power loses the newest records, since the server rolls back what its binary log lacks", v["sync_binlog"])
	}
	if flush := f.flushes(); v["log_bin"] == "OFF" && (flush == "1" || flush == "3") && !f.galera() && !f.group() {
		flaw("turn log_bin on, with sync_binlog=1", "there is no binary log: a record shows a moment before it is on the disk, and a crash of the server in that moment takes it back, so that two workers may hold one slot")
	}
	if f.group() && v["group_replication_consistency"] == eventual {
		flaw("set group_replication_consistency to BEFORE_ON_PRIMARY_FAILOVER for all sessions",
			"reads on a new primary of the group may lack the newest records (group_replication_consistency), and two workers may then hold one slot")
	}
	if f.galera() || f.group() {
		return flaws
	}
	enabled := first(v, "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled") == "ON"
	switch {
	case enabled && !f.semiSync():
		flaw("start a semi-synchronous replica", "no replica acknowledges (semi-synchronous replication is enabled, but not in force): a failover may lose the newest records, and two workers may then hold one slot")
	case enabled && f.semiSyncAfterCommit():
		flaw("set rpl_semi_sync_…_wait_point to AFTER_SYNC", "workers read records before a replica has them (AFTER_COMMIT): a failover may lose what was decided by them")
	case enabled && f.semiSyncTimeout() < patientSemiSync:
		flaw("raise it to an hour or more", "without a replica the server goes on alone after %d ms (rpl_semi_sync_…_timeout): a failover may then lose the newest records", f.semiSyncTimeout())
	case !enabled && f.replicas() > 0:
		flaw("use semi-synchronous replication, or don't fail over", "%d replicas are connected, none of them semi-synchronous: a failover may lose the newest records, and two workers may then hold one slot", f.replicas())
	}
	return flaws
}
