package mysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// facts are what a server says about itself and the tables, at one moment.
type facts struct {
	sqldb.Common

	// variables and status are the server's, by lower-case name, as they are shown. Those that it doesn't have are
	// missing.
	variables, status map[string]string
	// proxied says that something is between here and the server.
	proxied bool
	mariadb bool
	// frozen says that the clock that statements read stands still.
	frozen bool
	// engine and options are those of the table of the records.
	engine, options string
}

// factVariables are the settings that are looked at.
var factVariables = []string{
	"version", "version_comment", "hostname", "port", "read_only", "super_read_only", "innodb_read_only", "max_allowed_packet", "time_zone", "sql_mode",
	"character_set_client", "character_set_results", "autocommit", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method",
	"innodb_force_recovery", "log_bin", "sync_binlog", "binlog_format",
	"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point",
	"rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout", "rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_source_wait_no_replica",
	"rpl_semi_sync_master_wait_for_slave_count", "rpl_semi_sync_source_wait_for_replica_count",
	"wsrep_on", "wsrep_provider", "wsrep_provider_options", "wsrep_sync_wait", "group_replication_group_name", "group_replication_consistency",
	"group_replication_single_primary_mode",
}

// factStatus are the counters that are looked at.
var factStatus = []string{
	"Slaves_running", "Slave_running", "Slaves_connected", "Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status", "Rpl_semi_sync_master_clients",
	"Rpl_semi_sync_source_clients", "Innodb_redo_log_enabled", "wsrep_cluster_size", "wsrep_cluster_status", "wsrep_ready", "Ssl_cipher",
}

// look asks the server for the facts.
func (l *Ledger) look(ctx context.Context) (f *facts, err error) {
	err = sqldb.On(ctx, l.db, func(c *conn) error {
		f, err = l.lookOn(ctx, c)
		return err
	})
	return f, err
}

// lookOn asks on a connection, which nobody else uses.
func (l *Ledger) lookOn(ctx context.Context, c *conn) (*facts, error) {
	f := &facts{proxied: c.proxied, mariadb: c.mariadb, status: map[string]string{}}
	// A proxy must not send these elsewhere.
	rows, err := c.all(ctx, `SELECT CURRENT_USER(), `+sessionClock+` FROM DUAL UNION ALL SELECT NULL, NULL FROM DUAL WHERE `+astray)
	if err != nil {
		return nil, err
	}
	f.User, f.Server = rows[0][0], rows[0][1]
	if f.variables, err = c.variables(ctx, factVariables...); err != nil {
		return nil, err
	}
	rows, err = c.all(ctx, `SHOW GLOBAL STATUS WHERE Variable_name IN ('`+strings.Join(factStatus, "','")+`')`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		f.status[strings.ToLower(row[0])] = row[1]
	}
	if f.frozen, err = frozen(ctx, c); err != nil {
		return nil, err
	}
	if f.Ledger, f.engine, f.options, err = l.relation(ctx, c, l.address.Table); err != nil {
		return nil, err
	}
	f.Roster, _, _, err = l.relation(ctx, c, l.address.Table+sqldb.RosterSuffix)
	return f, err
}

// frozen reports whether the clock of statements stands still, as by SET timestamp in init_connect along with
// sysdate-is-now.
func frozen(ctx context.Context, c *conn) (bool, error) {
	first, err := c.all(ctx, `SELECT `+clockNow)
	if err != nil {
		return false, err
	}
	again, err := c.all(ctx, `SELECT SLEEP(0.002), `+clockNow+` FROM DUAL`)
	if err != nil {
		return false, err
	}
	if again[0][1] == first[0][0] {
		if again, err = c.all(ctx, `SELECT 0, `+clockNow); err != nil {
			return false, err
		}
	}
	return again[0][1] == first[0][0], nil
}

// relation asks for a table, its engine and its options; nil if the user knows of none. Triggers are those that the user may know of.
func (l *Ledger) relation(ctx context.Context, c *conn, table string) (r *sqldb.Relation, engine, options string, err error) {
	database := "'" + strings.ReplaceAll(l.address.Database, "'", "''") + "'"
	of := ` WHERE TABLE_SCHEMA = ` + database + ` AND TABLE_NAME = '` + table + `'`
	rows, err := c.all(ctx, `SELECT TABLE_TYPE, ENGINE, CREATE_OPTIONS FROM information_schema.TABLES`+of)
	if err != nil || len(rows) == 0 {
		return nil, "", "", err
	}
	r, engine, options = &sqldb.Relation{}, rows[0][1], rows[0][2]
	if kind := rows[0][0]; kind != "BASE TABLE" {
		r.Kind = strings.ToLower(kind)
	}
	keys := map[string]string{} // the columns of unique indexes, with their prefix's length if they have one
	for _, one := range []struct {
		text string
		take func(row []string)
	}{
		{`SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH, EXTRA,
			IF(IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL, 1, 0) FROM information_schema.COLUMNS` + of, func(row []string) { r.Columns = append(r.Columns, columnOf(row)) }},
		{`SELECT INDEX_NAME, LOWER(COALESCE(COLUMN_NAME, '')), SUB_PART FROM information_schema.STATISTICS` + of + ` AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX`, func(row []string) {
			keys[row[0]] += row[1] + row[2] + ","
		}},
		{`SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS` + of + ` AND CONSTRAINT_TYPE NOT IN ('PRIMARY KEY', 'UNIQUE') ORDER BY 1`, func(row []string) {
			r.Constraints = append(r.Constraints, row[0])
		}},
		{`SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ` + database + ` AND EVENT_OBJECT_TABLE = '` + table + `' ORDER BY 1`, func(row []string) {
			r.Triggers = append(r.Triggers, row[0])
		}},
	} {
		if rows, err = c.all(ctx, one.text); err != nil {
			return nil, "", "", err
		}
		for _, row := range rows {
			one.take(row)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if key := keys[name] == "worker_type,seq,"; name != "PRIMARY" || key {
			r.Indexes = append(r.Indexes, sqldb.Index{Name: name, Key: name == "PRIMARY" && key})
		}
	}
	return r, engine, options, nil
}

// columnOf is a column: its name, type and character set, its length in bytes if it has texts, what is special about it, and
// whether it is required.
func columnOf(row []string) sqldb.Column {
	c := sqldb.Column{Name: strings.ToLower(row[0]), Type: strings.ToLower(row[1]), Length: number(row[3]), Required: row[5] == "1"}
	if strings.Contains(c.Type, "char") || strings.Contains(c.Type, "binary") {
		c.Type += fmt.Sprintf("(%d)", c.Length)
	}
	if charset := strings.ToLower(row[2]); charset != "" {
		c.Type += fmt.Sprintf(" in %q", charset)
	}
	switch extra := strings.ToLower(row[4]); {
	case strings.Contains(extra, "generated"):
		c.Odd = "computed"
	case strings.Contains(extra, "auto_increment"):
		c.Type += " auto_increment"
	}
	return c
}

// first is the first of some values that is there.
func first(values map[string]string, names ...string) string {
	for _, name := range names {
		if v, ok := values[name]; ok {
			return v
		}
	}
	return ""
}

// number is a value as a number, or 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// galera reports whether the server is a node of a Galera cluster.
func (f *facts) galera() bool {
	return f.variables["wsrep_on"] == "ON" || f.variables["wsrep_provider"] != "" && f.variables["wsrep_provider"] != "none"
}

// group reports whether the server is a member of a group of MySQL's.
func (f *facts) group() bool { return f.variables["group_replication_group_name"] != "" }

// replicas is how many replicas are connected, as far as the server says.
func (f *facts) replicas() int64 {
	return max(number(f.status["slaves_connected"]), number(first(f.status, "rpl_semi_sync_source_clients", "rpl_semi_sync_master_clients")))
}

// several reports whether another server may take writes, now or later.
func (f *facts) several() bool { return f.galera() || f.group() || f.proxied || f.replicas() > 0 }

// servers is how many servers there are, as far as this one says.
func (f *facts) servers() int {
	return int(max(1+f.replicas(), number(f.status["wsrep_cluster_size"])))
}
