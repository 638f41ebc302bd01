package mysql

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// allChecks is how many checks there are.
const allChecks = 14

func TestATableThatIsUnfitIsRefusedAndTheFaultFound(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	create := func(columns string) []string {
		return []string{`DROP TABLE T`, `CREATE TABLE T (` + columns + `) ENGINE = InnoDB`}
	}
	const name, seq, document, key = `worker_type VARBINARY(255) NOT NULL, `, `seq BIGINT NOT NULL, `, `document LONGTEXT CHARACTER SET utf8mb4 NOT NULL, `, `PRIMARY KEY (worker_type, seq)`
	documenttest.UnfitIsRefused(t, map[string]documenttest.Unfit{
		"MyISAM":               {Plant: []string{`ALTER TABLE T ENGINE = MyISAM`}, Check: CheckTable, Says: "has the engine MyISAM, which isn't transactional"},
		"Aria":                 {Plant: []string{`ALTER TABLE T ENGINE = Aria`}, Check: CheckTable, Says: "has the engine Aria"},
		"partitioned":          {Plant: []string{`ALTER TABLE T PARTITION BY HASH (seq) PARTITIONS 2`}, Check: CheckTable, Says: "is partitioned: a partition can be dropped, and the newest record with it"},
		"a view":               {Plant: []string{`RENAME TABLE T TO T_real`, `CREATE VIEW T AS SELECT * FROM T_real`}, Check: CheckTable, Says: "is a view: use another table"},
		"versioned":            {Plant: []string{`ALTER TABLE T ADD SYSTEM VERSIONING`}, Check: CheckTable, Says: "is a system versioned"},
		"a trigger":            {Plant: []string{`CREATE TRIGGER T_audit AFTER DELETE ON T FOR EACH ROW SET @x = 1`}, Check: store.CheckConstraints, Says: "has triggers, which can change records or drop them: T_audit: drop them"},
		"a check":              {Plant: []string{`ALTER TABLE T ADD CONSTRAINT few CHECK (seq < 100)`}, Check: store.CheckConstraints, Says: "has constraints besides its key, which can keep records out: few"},
		"a check of a column":  {Plant: []string{`ALTER TABLE T MODIFY document JSON NOT NULL`}, Check: store.CheckConstraints, Says: "has constraints besides its key, which can keep records out: document"},
		"a foreign key":        {Plant: []string{`CREATE TABLE T_types (name VARBINARY(255) PRIMARY KEY) ENGINE = InnoDB`, `ALTER TABLE T ADD CONSTRAINT T_typed FOREIGN KEY (worker_type) REFERENCES T_types (name)`}, Check: store.CheckConstraints, Says: "which can keep records out: T_typed"},
		"a unique index":       {Plant: []string{`CREATE UNIQUE INDEX more ON T (seq, worker_type)`}, Check: store.CheckConstraints, Says: "has a unique index besides its key, which keeps records out: more"},
		"a required column":    {Plant: []string{`ALTER TABLE T ADD COLUMN owner INT NOT NULL`}, Check: store.CheckConstraints, Says: `that must not be null: "owner"`},
		"a computed column":    {Plant: []string{`ALTER TABLE T ADD COLUMN size INT AS (OCTET_LENGTH(document)) STORED`}, Check: store.CheckConstraints, Says: `has a column that is computed, and whose failure keeps records out: "size"`},
		"another column":       {Plant: []string{`ALTER TABLE T ADD COLUMN note TEXT`}},
		"another engine's log": {Plant: []string{`ALTER TABLE T ROW_FORMAT = COMPRESSED`}},
		"names in a collation": {Plant: create(`worker_type VARCHAR(255) COLLATE utf8mb4_general_ci NOT NULL, ` + seq + document + key), Check: CheckTable, Says: `of the type varchar(1020) in "utf8mb4", must be varbinary(63) or longer`},
		"padded names":         {Plant: create(`worker_type BINARY(64) NOT NULL, ` + seq + document + key), Check: CheckTable, Says: "has the column worker_type of the type binary(64)"},
		"short names":          {Plant: create(`worker_type VARBINARY(62) NOT NULL, ` + seq + document + key), Check: CheckTable, Says: "of the type varbinary(62), must be"},
		"small seqs":           {Plant: create(name + `seq INT NOT NULL, ` + document + key), Check: CheckTable, Says: "has the column seq of the type int, must be bigint"},
		"counted seqs":         {Plant: create(name + `seq BIGINT NOT NULL AUTO_INCREMENT, ` + document + key + `, KEY (seq)`), Check: CheckTable, Says: "of the type bigint auto_increment, must be bigint"},
		"latin documents":      {Plant: create(name + seq + `document LONGTEXT CHARACTER SET latin1 NOT NULL, ` + key), Check: CheckTable, Says: `of the type longtext in "latin1", must be longtext in utf8mb4`},
		"small documents":      {Plant: create(name + seq + `document TEXT CHARACTER SET utf8mb4 NOT NULL, ` + key), Check: CheckTable, Says: `of the type text in "utf8mb4"`},
		"medium documents":     {Plant: create(name + seq + `document MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, ` + key)},
		"no documents":         {Plant: create(name + seq + key), Check: CheckTable, Says: "has no column document"},
		"no key":               {Plant: []string{`ALTER TABLE T DROP PRIMARY KEY`}, Check: CheckTable, Says: "has no primary key (worker_type, seq) of whole columns"},
		"an index for a key":   {Plant: []string{`ALTER TABLE T DROP PRIMARY KEY, ADD UNIQUE KEY own (worker_type, seq)`}, Check: CheckTable, Says: "has no primary key (worker_type, seq) of whole columns"},
		"a key of prefixes":    {Plant: []string{`ALTER TABLE T DROP PRIMARY KEY, ADD PRIMARY KEY (worker_type(8), seq)`}, Check: CheckTable, Says: "has no primary key (worker_type, seq) of whole columns"},
		"a key the other way":  {Plant: []string{`ALTER TABLE T DROP PRIMARY KEY, ADD PRIMARY KEY (seq, worker_type)`}, Check: CheckTable, Says: "has no primary key (worker_type, seq) of whole columns"},
	}, func(t testing.TB, table string) store.Ledger {
		t.Helper()
		return opened(t, Options{URI: uriOf(t, dsn), Table: table, MaxConns: 1})
	}, func(t testing.TB, text string) { execute(t, dsn, text) })
}

func TestAServerThatIsUnfitIsRefusedAndTheFaultFound(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(f *facts)
		says   string
	}{
		"TiDB":                {func(f *facts) { f.variables["version"], f.mariadb = "8.0.11-TiDB-v8.5.1", false }, "is 8.0.11-TiDB"},
		"an old MariaDB":      {func(f *facts) { f.variables["version"] = "10.4.34-MariaDB" }, "has the version 10.4.34-MariaDB"},
		"an old MySQL":        {func(f *facts) { f.variables["version"], f.mariadb = "5.7.44-log", false }, "has the version 5.7.44-log"},
		"no version":          {func(f *facts) { f.variables["version"] = "?" }, "has the version ?"},
		"a replica":           {func(f *facts) { f.variables["read_only"] = "ON" }, "the server takes no writes (read_only is ON)"},
		"a no-lock":           {func(f *facts) { f.variables["read_only"] = "NO_LOCK_NO_ADMIN" }, "(read_only is NO_LOCK_NO_ADMIN)"},
		"read by InnoDB":      {func(f *facts) { f.variables["innodb_read_only"] = "ON" }, "(innodb_read_only is ON)"},
		"follows another":     {func(f *facts) { f.status["slaves_running"] = "1" }, "is a replica of another one, which has keys of its own"},
		"small packets":       {func(f *facts) { f.variables["max_allowed_packet"] = "16384" }, "no larger statements than 16384 bytes"},
		"a clock that stands": {func(f *facts) { f.frozen = true }, "has a clock that stands still"},
		"no redo log":         {func(f *facts) { f.status["innodb_redo_log_enabled"] = "OFF" }, "keeps no redo log"},
		"a split cluster":     {func(f *facts) { f.galeraNode(); f.status["wsrep_cluster_status"] = "non-Primary" }, "is cut off (wsrep_cluster_status is non-Primary)"},
		"writes for itself":   {func(f *facts) { f.galeraNode(); f.variables["wsrep_on"] = "OFF" }, "whose writes stay here (wsrep_on is OFF)"},
		"ignores splits": {func(f *facts) {
			f.galeraNode()
			f.variables["wsrep_provider_options"] = "gcache.size = 1; pc.ignore_sb = true; x = 2"
		}, "on both sides (pc.ignore_sb)"},
		"ignores quorums": {func(f *facts) { f.galeraNode(); f.variables["wsrep_provider_options"] = "pc.ignore_quorum = YES;" }, "on both sides (pc.ignore_quorum)"},
		"many primaries": {func(f *facts) {
			f.variables["group_replication_group_name"], f.variables["group_replication_single_primary_mode"] = "g", "OFF"
		}, "whose members all take writes"},
	} {
		f := soundFacts()
		if flaws := f.serverFlaws(); len(flaws) > 0 {
			t.Fatalf("serverFlaws() of a sound server = %v, want none", flaws)
		}
		c.change(f)
		if flaws := f.serverFlaws(); len(flaws) != 1 || !strings.Contains(flaws[0].What, c.says) || flaws[0].Remedy == "" || flaws[0].Check != CheckServer {
			t.Errorf("serverFlaws() of %s = %v, want one that says %q, with a remedy", what, flaws, c.says)
		}
	}
	for _, version := range []string{"8.0.11", "9.4.0-commercial", "8.4.3-azure"} {
		f := soundFacts()
		f.variables["version"], f.mariadb = version, false
		if flaws := f.serverFlaws(); len(flaws) > 0 {
			t.Errorf("serverFlaws() of MySQL %s = %v, want none", version, flaws)
		}
	}
	for _, version := range []string{"10.5.1-MariaDB", "5.5.5-10.11.6-MariaDB-log", "11.8.2-MariaDB-deb12"} {
		f := soundFacts()
		f.variables["version"] = version
		if flaws := f.serverFlaws(); len(flaws) > 0 {
			t.Errorf("serverFlaws() of MariaDB %s = %v, want none", version, flaws)
		}
	}
}

// soundFacts are those of a server that is fit.
func soundFacts() *facts {
	return &facts{
		mariadb: true, Common: sqldb.Common{Server: "h:1 #1 since 2026-01-01T00:00:00Z"}, status: map[string]string{"slaves_running": "0", "slave_running": "OFF"},
		variables: map[string]string{
			"version": "10.11.6-MariaDB", "read_only": "OFF", "innodb_read_only": "OFF", "max_allowed_packet": "16777216", "innodb_flush_log_at_trx_commit": "1",
			"innodb_doublewrite": "ON", "log_bin": "ON", "sync_binlog": "1", "wsrep_on": "OFF", "wsrep_provider": "none",
		},
	}
}

// galeraNode makes them those of a node of a cluster.
func (f *facts) galeraNode() {
	f.variables["wsrep_on"], f.variables["wsrep_provider"], f.status["wsrep_cluster_status"] = "ON", "/usr/lib/galera/libgalera_smm.so", "Primary"
}

func TestWhatMayLoseRecordsIsSaid(t *testing.T) {
	t.Parallel()
	semi := func(f *facts) {
		f.variables["rpl_semi_sync_master_enabled"], f.variables["rpl_semi_sync_master_wait_point"] = "ON", "AFTER_SYNC"
		f.variables["rpl_semi_sync_master_timeout"], f.status["rpl_semi_sync_master_status"] = "3600000", "ON"
	}
	for what, c := range map[string]struct {
		change                 func(f *facts)
		warns                  string // none if empty
		crash, power, failover string
	}{
		"alone":               {func(*facts) {}, "", "All records survive", "All records survive", "There is no failover"},
		"no binary log":       {func(f *facts) { f.variables["log_bin"] = "OFF" }, "shows a moment before it is on the disk", "All records survive", "All records survive", "There is no"},
		"flushes each second": {func(f *facts) { f.variables["innodb_flush_log_at_trx_commit"] = "0" }, "a crash of the server loses", "last second are lost", "last second are lost", "There is no"},
		"writes each second":  {func(f *facts) { f.variables["innodb_flush_log_at_trx_commit"] = "2" }, "a loss of power loses", "All records survive", "last second are lost", "There is no"},
		"no doublewrite":      {func(f *facts) { f.variables["innodb_doublewrite"] = "OFF" }, "may spoil the ledger", "All", "All", "There"},
		"no syncs":            {func(f *facts) { f.variables["innodb_flush_method"] = "nosync" }, "innodb_flush_method is nosync", "All", "All", "There"},
		"a replica":           {func(f *facts) { f.status["slaves_connected"] = "1" }, "none of them semi-synchronous", "All", "All", "asynchronous"},
		"an unsynced log":     {func(f *facts) { semi(f); f.variables["log_bin"], f.variables["sync_binlog"] = "ON", "0" }, "sync_binlog is 0", "All", "what its binary log lacks", "is on 1 of the replicas"},
		"semi-synchronous":    {semi, "", "All", "All", "unless none answers for 3600000 ms"},
		"one of two replicas": {func(f *facts) { semi(f); f.Hosts = make([]storekit.Host, 3) }, "only 1 of 2 replicas must have a record", "All", "All", "on 1 of the replicas"},
		"none connected now":  {func(f *facts) { f.Hosts = make([]storekit.Host, 2) }, "isn't semi-synchronous", "All", "All", "asynchronous"},
		"impatient":           {func(f *facts) { semi(f); f.variables["rpl_semi_sync_master_timeout"] = "10000" }, "goes on alone after 10000 ms", "All", "All", "for 10000 ms"},
		"shown too soon":      {func(f *facts) { semi(f); f.variables["rpl_semi_sync_master_wait_point"] = "AFTER_COMMIT" }, "AFTER_COMMIT", "All", "All", "others may have read it sooner"},
		"not in force":        {func(f *facts) { semi(f); f.status["rpl_semi_sync_master_status"] = "OFF" }, "not in force", "All", "All", "There is no"},
		"by MySQL's names": {func(f *facts) {
			f.variables["rpl_semi_sync_source_enabled"], f.variables["rpl_semi_sync_source_wait_point"] = "ON", "AFTER_SYNC"
			f.variables["rpl_semi_sync_source_timeout"], f.status["rpl_semi_sync_source_status"] = "10000", "ON"
		}, "goes on alone after 10000 ms", "All", "All", "for 10000 ms"},
		"a cluster":     {func(f *facts) { f.galeraNode() }, "", "All", "All", "crashes of nodes and partitions may lose acknowledged records"},
		"a lax cluster": {func(f *facts) { f.galeraNode(); f.variables["innodb_flush_log_at_trx_commit"] = "0" }, "innodb_flush_log_at_trx_commit is 0", "if all end one soon after the other", "if all do one soon after the other", "Other nodes"},
		"a hasty group": {func(f *facts) {
			f.variables["group_replication_group_name"], f.variables["group_replication_consistency"] = "g", "EVENTUAL"
		}, "reads on a new primary", "All", "All", "A majority"},
		"a group": {func(f *facts) { f.variables["group_replication_group_name"] = "g" }, "", "All", "All", "A majority of the group"},
	} {
		f := soundFacts()
		c.change(f)
		l := opened(t, Options{URI: "mysql://h/d"})
		l.core.Learn(f)
		if w := l.Warning(); (w == "") != (c.warns == "") || !strings.Contains(w, c.warns) {
			t.Errorf("Warning() %s = %q, want %q in it", what, w, c.warns)
		}
		for _, flaw := range f.durabilityFlaws() {
			sets := strings.Contains(flaw.Remedy, "=") || strings.Contains(flaw.Remedy, "SET GLOBAL")
			if sets && !strings.Contains(flaw.Remedy, "my.cnf") {
				t.Errorf("the remedy %s is %q, and would be gone at the next restart", what, flaw.Remedy)
			}
		}
		if d := l.Durability(); !strings.Contains(d.Crash, c.crash) || !strings.Contains(d.Power, c.power) || !strings.Contains(d.Failover, c.failover) {
			t.Errorf("Durability() %s = %+v, want %q, %q and %q", what, d, c.crash, c.power, c.failover)
		}
	}
}

func TestASoundStoreIsFoundSo(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{Flags: []string{"--log-bin", "--sync-binlog=1", "--server-id=1"}})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	documenttest.IsSound(t, initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs")}), allChecks)
}

func TestWhatIsMissingIsFound(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	l := opened(t, Options{URI: uriOf(t, dsn)})
	documenttest.Sentinel(t, "Append() without a table", l.Append(within(t), storetest.Grant("job", 1)), store.ErrMissing)
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckLedger, store.LevelFail, "there is no table")
	documenttest.Finds(t, found, store.CheckLedger, store.LevelFail, "→ leasectl init")
	documenttest.Finds(t, found, store.CheckRoster, store.LevelWarn, "there is no table")
	must(t, "Init()", l.Init(within(t)))
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))

	// A user who may use another table of the database isn't told of this one.
	execute(t, dsn, "CREATE TABLE other (a INT)")
	stranger := opened(t, Options{URI: uriOf(t, mysqlpeer.Role(t, dsn, "SELECT ON other"))})
	documenttest.Sentinel(t, "Append() without rights", stranger.Append(within(t), storetest.Grant("job", 2)), store.ErrDenied)
	found, err = stranger.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckRead, store.LevelFail, "1142")
}

func TestARightThatIsMissingIsFound(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	initialised(t, Options{URI: uriOf(t, dsn)})
	const all = "SELECT, INSERT, UPDATE, DELETE ON worker_leases_roster"
	documenttest.RightsAreFound(t, map[string]documenttest.Right{
		"none missing":            {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases", all}, Check: store.CheckAppend, Level: store.LevelOK, Says: "granted to r"},
		"all of the database":     {Rights: []string{"SELECT, INSERT, UPDATE, DELETE ON *"}, Check: store.CheckAppend, Level: store.LevelOK, Says: "granted to r"},
		"columns do":              {Rights: []string{"SELECT (worker_type, seq, document), INSERT (worker_type, seq, document) ON worker_leases", "DELETE ON worker_leases", all}, Check: store.CheckAppend, Level: store.LevelOK, Says: "granted to r"},
		"no insert":               {Rights: []string{"SELECT, DELETE ON worker_leases", all}, Denied: true, Check: store.CheckAppend, Level: store.LevelFail, Says: "worker_leases TO r"},
		"no delete":               {Rights: []string{"SELECT, INSERT ON worker_leases", all}, Check: store.CheckTrim, Level: store.LevelWarn, Says: "lacks DELETE ON "},
		"no rights in the roster": {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases"}, Check: store.CheckRoster, Level: store.LevelWarn, Says: "there is no table"},
		"only some in the roster": {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases", "SELECT, INSERT ON worker_leases_roster"}, Check: store.CheckRoster, Level: store.LevelWarn, Says: "lacks UPDATE, DELETE ON "},
	}, func(t testing.TB, rights []string) store.Ledger {
		t.Helper()
		return opened(t, Options{URI: uriOf(t, mysqlpeer.Role(t, dsn, rights...))})
	})
}
