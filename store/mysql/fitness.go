package mysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckServer: the server is MySQL or MariaDB, takes writes, and keeps what it is given.
	CheckServer = "server"
	// CheckProxy: nothing between here and the server sends statements elsewhere.
	CheckProxy = "proxy"
	// CheckTable: the tables are InnoDB's, with the columns and the key of a ledger.
	CheckTable = "table"
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = "durability"
)

const (
	// The oldest versions that are used. Before, MariaDB has no RETURNING.
	oldestMySQL   = 8_000
	oldestMariaDB = 10_005
	// leastPacket is the least max_allowed_packet in bytes: a statement with the largest record, each of whose bytes
	// takes two, fits into it.
	leastPacket = 1 << 20
	// leastType is the least size of the column of worker types, in bytes.
	leastType = 63
)

// check says why the database can't keep a ledger, or nil.
func (l *Ledger) check(ctx context.Context) error {
	f, err := l.look(ctx)
	if l.known.Load() == nil {
		if why, all := storekit.AllUnfit(err); all {
			return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}.Refuse()
		}
		if why, is := ofServer(err); is {
			return storekit.Flaw{Check: CheckProxy, What: why.Why, Remedy: proxyRemedy}.Refuse()
		}
	}
	if err != nil {
		return err
	}
	if flaws := slices.Concat(f.serverFlaws(), l.tableFlaws(f.ledger)); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	if f.ledger == nil {
		return l.absent(ctx)
	}
	if f.several() {
		l.shared.Store(true)
	}
	l.known.Store(f)
	return nil
}

// proxyRemedy is what to do about a proxy that splits reads from writes.
const proxyRemedy = "let it send all statements of this user to the server that takes writes"

// version is the server's, as major × 1000 + minor.
func (f *facts) version() int {
	text := strings.TrimPrefix(f.variables["version"], "5.5.5-") // so that old replicas take MariaDB's
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return 0
	}
	return a*1000 + b
}

// otherServers are servers that speak the protocol, and keep keys in other ways.
var otherServers = []string{"tidb", "vitess", "singlestore", "memsql", "oceanbase", "doris", "starrocks", "dolt", "clickhouse", "polardb", "columnstore"}

// serverFlaws are the reasons why a server is unfit.
func (f *facts) serverFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckServer, Remedy: remedy, What: "the server " + fmt.Sprintf(format, args...)})
	}
	v := f.variables
	says := v["version"] + " " + v["version_comment"]
	if slices.ContainsFunc(otherServers, func(name string) bool { return strings.Contains(strings.ToLower(says), name) }) {
		flaw("use MySQL or MariaDB", "is %.60s, of which nothing is known", says)
	}
	if old := f.version(); f.mariadb && old < oldestMariaDB || !f.mariadb && old < oldestMySQL {
		flaw("use MySQL 8.0 or MariaDB 10.5, or later", "has the version %.60s", v["version"])
	}
	if why := unwritable(v); why != "" {
		flaws = append(flaws, storekit.Flaw{Check: CheckServer, What: why, Remedy: nameTheRightOne})
	}
	if n := number(f.status["slaves_running"]); n > 0 || f.status["slave_running"] == "ON" {
		flaw(nameTheRightOne+"; on the right one, STOP REPLICA", "is a replica of another one, which has keys of its own")
	}
	if n, err := strconv.ParseInt(v["max_allowed_packet"], 10, 64); err == nil && n < leastPacket {
		flaw(fmt.Sprintf("raise it to %d", leastPacket), "takes no larger statements than %d bytes (max_allowed_packet): the largest records don't fit", n)
	}
	if f.frozen {
		flaw("take SET timestamp out of init_connect", "has a clock that stands still for this user (SET timestamp, with sysdate-is-now)")
	}
	if f.status["innodb_redo_log_enabled"] == "OFF" {
		flaw("ALTER INSTANCE ENABLE INNODB REDO_LOG", "keeps no redo log: a crash spoils all tables")
	}
	return append(flaws, f.clusterFlaws()...)
}

// clusterFlaws are those of a server that is one of several which take writes.
func (f *facts) clusterFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckServer, Remedy: remedy, What: "the server " + fmt.Sprintf(format, args...)})
	}
	v := f.variables
	if f.galera() {
		if v["wsrep_on"] != "ON" {
			flaw("turn wsrep_on on", "is a node of a Galera cluster whose writes stay here (wsrep_on is %s)", v["wsrep_on"])
		}
		if status, known := f.status["wsrep_cluster_status"]; known && status != "Primary" {
			flaw("restore the cluster", "is a node of a Galera cluster that is cut off (wsrep_cluster_status is %.40s)", status)
		}
		for _, name := range []string{"pc.ignore_sb", "pc.ignore_quorum"} {
			if value := providerOption(v["wsrep_provider_options"], name); value == "true" || value == "yes" || value == "on" || value == "1" {
				flaw("set it to false", "goes on when its cluster falls apart, on both sides (%s)", name)
			}
		}
	}
	if f.group() && v["group_replication_single_primary_mode"] == "OFF" {
		flaw("use group_replication_single_primary_mode", "is one of a group whose members all take writes, and read what isn't the newest")
	}
	return flaws
}

// providerOption is one of wsrep_provider_options, which are written "name = value; name = value".
func providerOption(options, name string) string {
	for one := range strings.SplitSeq(options, ";") {
		if key, value, ok := strings.Cut(one, "="); ok && strings.TrimSpace(key) == name {
			return strings.ToLower(strings.TrimSpace(value))
		}
	}
	return ""
}

// tableFlaws are the reasons why the table of the records is unfit; none if there is no table.
func (l *Ledger) tableFlaws(r *relation) (flaws []storekit.Flaw) {
	if r == nil {
		return nil
	}
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s.%s ", l.address.Database, l.address.table) + fmt.Sprintf(format, args...)})
	}
	other := "use another table"
	list := func(names []string) string { return fmt.Sprintf("%.200s", strings.Join(names, ", ")) }
	if r.kind != "BASE TABLE" {
		flaw(CheckTable, other, "is a %s", strings.ToLower(r.kind))
		return flaws
	}
	if !strings.EqualFold(r.engine, "InnoDB") {
		flaw(CheckTable, "ALTER TABLE … ENGINE = InnoDB, while no worker works", "has the engine %.30s, which isn't transactional, or isn't known", r.engine)
	}
	if strings.Contains(strings.ToLower(r.options), "partitioned") {
		flaw(CheckTable, "ALTER TABLE … REMOVE PARTITIONING", "is partitioned: a partition can be dropped, and the newest record with it")
	}
	if len(r.triggers) > 0 {
		flaw(store.CheckConstraints, "drop them", "has triggers, which can change records: %s", list(r.triggers))
	}
	if len(r.constraints) > 0 {
		flaw(store.CheckConstraints, "drop them", "has constraints besides its key, which can keep records out: %s", list(r.constraints))
	}
	return append(flaws, l.columnFlaws(r)...)
}

// columnFlaws are those of the columns and the key.
func (l *Ledger) columnFlaws(r *relation) (flaws []storekit.Flaw) {
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s.%s ", l.address.Database, l.address.table) + fmt.Sprintf(format, args...)})
	}
	other := "use another table"
	seen := map[string]bool{}
	for _, c := range r.columns {
		ours := slices.Contains([]string{"worker_type", "seq", "document"}, c.name)
		seen[c.name] = ours
		switch {
		case strings.Contains(c.extra, "generated"):
			flaw(store.CheckConstraints, "drop it", "has a column that is computed, and whose failure keeps records out: %.60q", c.name)
		case !ours && c.required:
			flaw(store.CheckConstraints, "give it a default, or drop it", "has a column that records lack, and that must not be null: %.60q", c.name)
		case c.name == "worker_type" && (c.kind != "varbinary" || c.length < leastType):
			flaw(CheckTable, other, "has the column worker_type of the type %.60s(%d), must be varbinary(%d) or longer: others may take two names for one", c.kind, c.length, leastType)
		case c.name == "seq" && (c.kind != "bigint" || strings.Contains(c.extra, "auto_increment")):
			flaw(CheckTable, other, "has the column seq of the type %.60s %.60s, must be bigint", c.kind, c.extra)
		case c.name == "document" && (c.kind != "longtext" && c.kind != "mediumtext" || c.charset != "utf8mb4"):
			flaw(CheckTable, other, "has the column document of the type %.60s in %.60q, must be longtext in utf8mb4: others don't keep each byte of a record", c.kind, c.charset)
		}
	}
	for _, name := range []string{"worker_type", "seq", "document"} {
		if !seen[name] {
			flaw(CheckTable, other, "has no column %s", name)
		}
	}
	if !slices.Equal(r.indexes["PRIMARY"], []string{"worker_type", "seq"}) {
		flaw(CheckTable, "ALTER TABLE … ADD PRIMARY KEY (worker_type, seq)", "has no primary key (worker_type, seq) of whole columns")
	}
	for _, name := range slices.Sorted(maps.Keys(r.indexes)) {
		if name != "PRIMARY" {
			flaw(store.CheckConstraints, "drop it", "has a unique index besides its key, which keeps records out: %.120s", name)
		}
	}
	return flaws
}
