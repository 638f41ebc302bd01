package mysql

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// flushes is innodb_flush_log_at_trx_commit: 1 writes and syncs the log with each commit, 2 writes it, 0 neither, and
// MariaDB's 3 syncs twice.
func (f *facts) flushes() string { return f.variables["innodb_flush_log_at_trx_commit"] }

// durability is what survives.
func (f *facts) durability() store.Durability {
	return store.Durability{Crash: f.crash(), Power: f.power(), Failover: f.failover()}
}

func (f *facts) crash() string {
	switch {
	case f.flushes() == "0" && f.galera():
		return "Other nodes have the records when one server's process ends; if all end one soon after the other, those of the last second are lost (innodb_flush_log_at_trx_commit is 0)."
	case f.flushes() == "0":
		return "The records of the last second are lost (innodb_flush_log_at_trx_commit is 0)."
	}
	return "All records survive: each is in the log before its append returns."
}

func (f *facts) power() string {
	switch {
	case (f.flushes() == "1" || f.flushes() == "3") && f.binlogUnsynced() && !f.galera():
		return "The newest records are lost: the server rolls back what its binary log lacks (sync_binlog isn't 1)."
	case f.flushes() == "1" || f.flushes() == "3":
		return "All records survive: each is on the disk before its append returns, unless the disk lies."
	case f.galera():
		return "Other nodes have the records when one loses power; if all do one soon after the other, those of the last second are lost (innodb_flush_log_at_trx_commit isn't 1)."
	}
	return "The records of the last second are lost (innodb_flush_log_at_trx_commit isn't 1)."
}

func (f *facts) failover() string {
	switch {
	case f.galera():
		return "Other nodes have each record before its append returns, and a node is read when it has all that were acknowledged; but crashes of nodes and partitions may lose acknowledged records, see the package documentation."
	case f.group():
		return "A majority of the group has each record before its append returns; a new primary is read when it has all of them."
	case f.semiSync() && f.semiSyncAfterCommit():
		return "A replica has each record before its append returns while semi-synchronous replication is in force, but others may have read it sooner."
	case f.semiSync():
		return fmt.Sprintf("Each record is on %d of the replicas before its append returns, unless none answers for %v ms: then the server goes on without, and a failover loses the newest. So does one to a replica that has fewer than another.", f.acknowledging(), f.semiSyncTimeout())
	case f.replicas() > 0 || len(f.Hosts) > 1:
		return "A replica that takes over may lack the newest records: replication is asynchronous."
	}
	return "There is no failover that is known of; a replica that takes over would lack the newest records, unless replication is semi-synchronous."
}

// acknowledging is how many replicas must have a record before its append returns. MariaDB waits for one.
func (f *facts) acknowledging() int64 {
	return max(1, number(first(f.variables, "rpl_semi_sync_source_wait_for_replica_count", "rpl_semi_sync_master_wait_for_slave_count")))
}

// survivesFailover reports whether each of several hosts, of which the URI names all, has what was acknowledged.
func (f *facts) survivesFailover(hosts int) bool {
	return hosts > 1 && f.semiSync() && !f.semiSyncAfterCommit() && f.semiSyncTimeout() >= patientSemiSync && int64(hosts) <= 1+f.acknowledging()
}

// flushed reports whether each commit is on the disk before it is acknowledged.
func (f *facts) flushed() bool {
	return (f.flushes() == "1" || f.flushes() == "3") && !f.binlogUnsynced()
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

// lasting is how a setting is made to last: SET GLOBAL alone is gone when the server is restarted.
func (f *facts) lasting(setting string) string {
	if f.mariadb {
		return fmt.Sprintf("put %s under [mariadbd] into my.cnf, and restart the server or SET GLOBAL it, too", setting)
	}
	return fmt.Sprintf("SET PERSIST %s, or put it under [mysqld] into my.cnf and restart the server", setting)
}

// durabilityFlaws are what could lose acknowledged records, or keep appends waiting.
func (f *facts) durabilityFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckDurability}
	v := f.variables
	if flush := f.flushes(); flush != "1" && flush != "3" && flush != "" {
		flaws.Add(f.lasting("innodb_flush_log_at_trx_commit=1"), "innodb_flush_log_at_trx_commit is %s: %s loses the records of the last second, and two workers may then hold one slot", flush,
			map[bool]string{true: "a crash of the server", false: "a loss of power"}[flush == "0"])
	}
	if v["innodb_doublewrite"] == "OFF" || v["innodb_doublewrite"] == "DETECT_ONLY" {
		flaws.Add("put innodb_doublewrite=ON into my.cnf and restart the server, unless the file system never writes a part of a page", "innodb_doublewrite is %s: a loss of power may spoil the ledger", v["innodb_doublewrite"])
	}
	if strings.EqualFold(v["innodb_flush_method"], "nosync") || strings.EqualFold(v["innodb_flush_method"], "littlesync") {
		flaws.Add("take it out of my.cnf and restart the server", "innodb_flush_method is %s: a loss of power may spoil the ledger", v["innodb_flush_method"])
	}
	if f.binlogUnsynced() {
		flaws.Add(f.lasting("sync_binlog=1"), "sync_binlog is %s: a loss of power loses the newest records, since the server rolls back what its binary log lacks", v["sync_binlog"])
	}
	if flush := f.flushes(); v["log_bin"] == "OFF" && (flush == "1" || flush == "3") && !f.galera() && !f.group() {
		flaws.Add("put log_bin and sync_binlog=1 into my.cnf and restart the server", "there is no binary log: a record shows a moment before it is on the disk, and a crash of the server in that moment takes it back, so that two workers may hold one slot")
	}
	if f.group() && v["group_replication_consistency"] == eventual {
		flaws.Add(f.lasting("group_replication_consistency='BEFORE_ON_PRIMARY_FAILOVER'"),
			"reads on a new primary of the group may lack the newest records (group_replication_consistency), and two workers may then hold one slot")
	}
	if f.galera() || f.group() {
		return flaws.All
	}
	return append(flaws.All, f.replicationFlaws()...)
}

// clusterLoses is what is known of Galera, for people who look: those who chose a cluster don't change it because a worker says so.
func (f *facts) clusterLoses() (flaws []storekit.Flaw) {
	if f.galera() {
		flaws = append(flaws, storekit.Flaw{
			Check: CheckDurability, Remedy: "let what the work writes to check the lease's token, or use one server, or semi-synchronous replicas",
			What: "a Galera cluster may lose acknowledged records when nodes crash or are cut off, even with innodb_flush_log_at_trx_commit=1 (" + galeraAnalysis + "), and two workers may then hold one slot",
		})
	}
	return flaws
}

// galeraAnalysis is of MariaDB 12.1.2 to 12.2.2.
const galeraAnalysis = "https://jepsen.io/blog/2026-03-16-mariadb-galera-cluster-12.1.2"

// named is the name of a setting of semi-synchronous replication, or of its status: MySQL has another word since 8.0.26.
func (f *facts) named(end string) string {
	if _, ok := f.variables["rpl_semi_sync_source_enabled"]; ok {
		return "rpl_semi_sync_source_" + end
	}
	return "rpl_semi_sync_master_" + end
}

// replicationFlaws are those of a server with replicas.
func (f *facts) replicationFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckDurability}
	others := int64(len(f.Hosts) - 1)
	enabled := first(f.variables, "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled") == "ON"
	switch {
	case enabled && !f.semiSync():
		flaws.Add("start a semi-synchronous replica", "no replica acknowledges (semi-synchronous replication is enabled, but not in force): a failover may lose the newest records, and two workers may then hold one slot")
	case enabled && f.semiSyncAfterCommit():
		flaws.Add(f.lasting(f.named("wait_point")+"=AFTER_SYNC"), "workers read records before a replica has them (AFTER_COMMIT): a failover may lose what was decided by them")
	case enabled && f.semiSyncTimeout() < patientSemiSync:
		flaws.Add(f.lasting(f.named("timeout")+fmt.Sprint("=", patientSemiSync)), "without a replica the server goes on alone after %d ms (%s): a failover may then lose the newest records", f.semiSyncTimeout(), f.named("timeout"))
	case enabled && others > f.acknowledging():
		remedy := "fail over to the replica that has the most alone, by its GTID position"
		if !f.mariadb {
			remedy += ", or " + f.lasting(fmt.Sprint(f.named("wait_for_replica_count"), "=", others))
		}
		flaws.Add(remedy, "only %d of %d replicas must have a record before its append returns: a failover to another one may lose the newest records, and two workers may then hold one slot", f.acknowledging(), others)
	case !enabled && f.replicas() > 0:
		flaws.Add("use semi-synchronous replication, or don't fail over", "%d replicas are connected, none of them semi-synchronous: a failover may lose the newest records, and two workers may then hold one slot", f.replicas())
	case !enabled && others > 0:
		flaws.Add("use semi-synchronous replication, or don't fail over", "replication to the other hosts isn't semi-synchronous: a failover may lose the newest records, and two workers may then hold one slot")
	}
	return flaws.All
}
