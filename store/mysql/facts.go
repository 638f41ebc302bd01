package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// facts are what a server says about itself and the tables, at one moment.
type facts struct {
	// variables and status are the server's, by lower-case name, as they are shown. Those that it doesn't have are
	// missing.
	variables, status map[string]string
	// user is the account by which the server knows the user.
	user string
	// server names the process, and proxied says that something is between here and it.
	server  string
	proxied bool
	mariadb bool
	// frozen says that the clock that statements read stands still.
	frozen bool
	// ledger and roster are nil if the user knows of no such table.
	ledger, roster *relation
}

// relation is a table, as the information schema has it. Triggers are those that the user may know of.
type relation struct {
	kind, engine, options string
	columns               []column
	indexes               map[string][]string // unique ones, by name: columns, with their prefix's length if they have one
	constraints, triggers []string
}

type column struct {
	name, kind, charset string
	length              int64 // in bytes, of texts
	extra               string
	required            bool
}

// factVariables are the settings that are looked at.
var factVariables = []string{
	"version", "version_comment", "hostname", "port", "read_only", "super_read_only", "innodb_read_only", "max_allowed_packet", "time_zone", "sql_mode",
	"character_set_client", "character_set_results", "autocommit", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method",
	"innodb_force_recovery", "log_bin", "sync_binlog", "binlog_format",
	"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point",
	"rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout", "rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_source_wait_no_replica",
	"wsrep_on", "wsrep_provider", "wsrep_provider_options", "wsrep_sync_wait", "group_replication_group_name", "group_replication_consistency",
	"group_replication_single_primary_mode",
}

// factStatus are the counters that are looked at.
var factStatus = []string{
	"Slaves_running", "Slave_running", "Slaves_connected", "Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status", "Rpl_semi_sync_master_clients",
	"Rpl_semi_sync_source_clients", "Innodb_redo_log_enabled", "wsrep_cluster_size", "wsrep_cluster_status", "wsrep_ready", "Ssl_cipher",
}

// look asks the server for the facts.
func (l *Ledger) look(ctx context.Context) (*facts, error) {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return l.lookBy(ctx, c)
}

// lookBy asks on a connection, which nobody else uses.
func (l *Ledger) lookBy(ctx context.Context, c *sql.Conn) (f *facts, err error) {
	err = c.Raw(func(own any) error {
		f, err = l.lookOn(ctx, own.(*conn))
		return err
	})
	return f, err
}

func (l *Ledger) lookOn(ctx context.Context, c *conn) (*facts, error) {
	f := &facts{proxied: c.proxied, mariadb: c.mariadb, status: map[string]string{}}
	// A proxy must not send these elsewhere.
	rows, err := c.all(ctx, `SELECT CURRENT_USER(), `+sessionClock+` FROM DUAL UNION ALL SELECT NULL, NULL FROM DUAL WHERE `+astray)
	if err != nil {
		return nil, err
	}
	f.user, f.server = rows[0][0], rows[0][1]
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
	if f.ledger, err = l.relation(ctx, c, l.address.table); err != nil {
		return nil, err
	}
	f.roster, err = l.relation(ctx, c, l.address.table+rosterSuffix)
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

// relation asks for a table; nil if the user knows of none.
func (l *Ledger) relation(ctx context.Context, c *conn, table string) (*relation, error) {
	of := ` WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '` + table + `'`
	rows, err := c.all(ctx, `SELECT TABLE_TYPE, ENGINE, CREATE_OPTIONS FROM information_schema.TABLES`+of)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := &relation{kind: rows[0][0], engine: rows[0][1], options: rows[0][2], indexes: map[string][]string{}}
	rows, err = c.all(ctx, `SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH, EXTRA,
		IF(IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL, 1, 0) FROM information_schema.COLUMNS`+of)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		length, _ := strconv.ParseInt(row[3], 10, 64)
		r.columns = append(r.columns, column{strings.ToLower(row[0]), strings.ToLower(row[1]), strings.ToLower(row[2]), length, strings.ToLower(row[4]), row[5] == "1"})
	}
	rows, err = c.all(ctx, `SELECT INDEX_NAME, LOWER(COALESCE(COLUMN_NAME, '')), SUB_PART FROM information_schema.STATISTICS`+of+` AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		r.indexes[row[0]] = append(r.indexes[row[0]], row[1]+row[2])
	}
	rows, err = c.all(ctx, `SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS`+of+` AND CONSTRAINT_TYPE NOT IN ('PRIMARY KEY', 'UNIQUE') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		r.constraints = append(r.constraints, row[0])
	}
	rows, err = c.all(ctx, `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = '`+table+`' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		r.triggers = append(r.triggers, row[0])
	}
	return r, nil
}

// absent is the error of a table that the user knows of none, and nil if it is there nevertheless.
func (l *Ledger) absent(ctx context.Context) error {
	_, err := l.db.ExecContext(ctx, l.filled(`SELECT 1 FROM LEDGER LIMIT 0`))
	switch {
	case err == nil:
		return errors.New("the information schema doesn't have the table")
	case errors.Is(l.meaning(err).Is, store.ErrMissing):
		return l.missing()
	}
	return err
}

// missing is the error of a table that isn't there.
func (l *Ledger) missing() error {
	return fmt.Errorf("there is no table %s.%s: %w", l.address.Database, l.address.table, store.ErrMissing)
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
