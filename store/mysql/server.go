package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// The oldest versions that are used.
	oldestMySQL   = 8_000
	oldestMariaDB = 10_005
	// leastPacket is the least max_allowed_packet in bytes: a statement with the largest record, each of whose bytes
	// takes two, fits into it.
	leastPacket = 1 << 20
)

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
func (f *facts) serverFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckServer, Of: "the server "}
	v := f.variables
	says := v["version"] + " " + v["version_comment"]
	if slices.ContainsFunc(otherServers, func(name string) bool { return strings.Contains(strings.ToLower(says), name) }) {
		flaws.Add("use MySQL or MariaDB", "is %.60s, of which nothing is known", says)
	}
	if old := f.version(); f.mariadb && old < oldestMariaDB || !f.mariadb && old < oldestMySQL {
		flaws.Add("use MySQL 8.0 or MariaDB 10.5, or later", "has the version %.60s", v["version"])
	}
	if why := unwritable(v); why != "" {
		flaws.All = append(flaws.All, storekit.Flaw{Check: CheckServer, What: why, Remedy: nameTheRightOne})
	}
	if n := number(f.status["slaves_running"]); n > 0 || f.status["slave_running"] == "ON" {
		flaws.Add(nameTheRightOne+"; on the right one, STOP REPLICA and RESET REPLICA ALL, else it follows again when it is restarted", "is a replica of another one, which has keys of its own")
	}
	if n, err := strconv.ParseInt(v["max_allowed_packet"], 10, 64); err == nil && n < leastPacket {
		flaws.Add(f.lasting(fmt.Sprintf("max_allowed_packet=%d", leastPacket)), "takes no larger statements than %d bytes (max_allowed_packet): the largest records don't fit", n)
	}
	if f.frozen {
		flaws.Add("take SET timestamp out of init_connect, in my.cnf, too", "has a clock that stands still for this user (SET timestamp, with sysdate-is-now)")
	}
	if f.status["innodb_redo_log_enabled"] == "OFF" {
		flaws.Add("ALTER INSTANCE ENABLE INNODB REDO_LOG", "keeps no redo log: a crash spoils all tables")
	}
	return append(flaws.All, f.clusterFlaws()...)
}

// clusterFlaws are those of a server that is one of several which take writes.
func (f *facts) clusterFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckServer, Of: "the server "}
	v := f.variables
	if f.galera() {
		if v["wsrep_on"] != "ON" {
			flaws.Add(f.lasting("wsrep_on=ON"), "is a node of a Galera cluster whose writes stay here (wsrep_on is %s)", v["wsrep_on"])
		}
		if status, known := f.status["wsrep_cluster_status"]; known && status != "Primary" {
			flaws.Add("restore the cluster", "is a node of a Galera cluster that is cut off (wsrep_cluster_status is %.40s)", status)
		}
		for _, name := range []string{"pc.ignore_sb", "pc.ignore_quorum"} {
			if value := providerOption(v["wsrep_provider_options"], name); value == "true" || value == "yes" || value == "on" || value == "1" {
				flaws.Add("set it to false in wsrep_provider_options, in my.cnf of all nodes", "goes on when its cluster falls apart, on both sides (%s)", name)
			}
		}
	}
	if f.group() && v["group_replication_single_primary_mode"] == "OFF" {
		flaws.Add("SELECT group_replication_switch_to_single_primary_mode(), and put group_replication_single_primary_mode=ON into my.cnf of all members", "is one of a group whose members all take writes, and read what isn't the newest")
	}
	return flaws.All
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
