package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// driverConn is what the driver's connections can do.
type driverConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

// conn is a connection of the pool, whose session is set up.
type conn struct {
	driverConn

	// line is that of a connection of our own, and loan that of one of the application's pool, by whose clock it is given back, with the
	// statements that set up its session and make it what it was, and the server that it leads to.
	line                   *line
	loan                   *sqldb.Loan
	clock                  clock.Clock
	setUp, restore, server string
	// used notes a statement.
	used func()
	// session is the id of the server's, and process the name of the server's process.
	session, process string
	// proxied says that something is between here and the server that gives out connection ids.
	proxied bool
	// mariadb says that the server is MariaDB.
	mariadb bool
	// statementLog says that replicas get statements, not rows.
	statementLog bool
	// galera says that the server is a node of a Galera cluster of MariaDB's.
	galera bool
	bad    bool
}

// IsValid is false of a connection that another server answers on, or one that takes no writes any more.
func (c *conn) IsValid() bool { return !c.bad && c.driverConn.IsValid() }

// Close closes it, or gives it back.
func (c *conn) Close() error {
	if c.loan != nil {
		return c.giveBack()
	}
	return c.driverConn.Close()
}

// ExecContext executes a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := storekit.Send(ctx); err != nil {
		return nil, err
	}
	c.used()
	result, err := c.driverConn.ExecContext(ctx, query, args)
	return result, c.judge(err)
}

// QueryContext executes a statement that has rows.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := storekit.Send(ctx); err != nil {
		return nil, err
	}
	c.used()
	found, err := c.driverConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, c.judge(err)
	}
	return rows{found, c}, nil
}

// judge is the error of a statement.
func (c *conn) judge(err error) error {
	if _, isUnfit := ofServer(err); isUnfit {
		c.bad = true // Another host may take writes.
	}
	return err
}

// rows are those of a statement.
type rows struct {
	driver.Rows

	of *conn
}

// Next reads a row.
func (r rows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return r.of.judge(err)
	}
	return err
}

// all reads the rows of a statement on a connection.
func (c *conn) all(ctx context.Context, text string) ([][]string, error) {
	found, err := c.driverConn.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	return sqldb.Texts(found)
}

// variables are settings of the server or the session, by name, as they are shown.
func (c *conn) variables(ctx context.Context, names ...string) (map[string]string, error) {
	found, err := c.all(ctx, "SHOW SESSION VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "','")+"')")
	values := map[string]string{}
	for _, row := range found {
		if len(row) != 2 {
			return nil, errors.New("the server's variables can't be read")
		}
		values[strings.ToLower(row[0])] = row[1]
	}
	return values, err
}

// introduction is what a server says of itself when a connection is opened.
type introduction struct {
	variables map[string]string
	// id is that of the session, server the server's identity, and began the Unix time at which it was started.
	id, began, server string
}

// introduce sets up the first part of a session, and asks the server who it is.
func (c *conn) introduce(ctx context.Context) (in introduction, err error) {
	if _, err := c.driverConn.ExecContext(ctx, "SET "+strings.Join(baseSettings, ", "), nil); err != nil {
		return in, fmt.Errorf("set up the session: %w", err)
	}
	// A proxy that sends reads to replicas sends transactions to the server that takes writes.
	if _, err := c.driverConn.ExecContext(ctx, "START TRANSACTION", nil); err != nil {
		return in, err
	}
	v, err := c.variables(ctx, "version", "hostname", "port", "server_id", "read_only", "innodb_read_only", "wsrep_on", "wsrep_sync_wait",
		"group_replication_consistency", "binlog_format", "log_bin", "cte_max_recursion_depth")
	if err != nil {
		return in, err
	}
	c.mariadb = strings.Contains(v["version"], "MariaDB")
	c.galera = c.mariadb && v["wsrep_on"] == "ON"
	c.statementLog = v["binlog_format"] == "STATEMENT" && v["log_bin"] == "ON"
	schema := map[bool]string{true: "information_schema", false: "performance_schema"}[c.mariadb]
	// Both sides are as of the statement's start, in whole seconds.
	said, err := c.all(ctx, `SELECT CAST(CONNECTION_ID() AS CHAR), CAST(UNIX_TIMESTAMP() - (SELECT VARIABLE_VALUE FROM `+schema+`.global_status WHERE VARIABLE_NAME = 'Uptime') AS UNSIGNED), (`+identity+`)`)
	if err != nil {
		return in, err
	}
	if len(said) != 1 || len(said[0]) != 3 || v["version"] == "" || v["read_only"] == "" {
		return in, errors.New("the server doesn't say who it is")
	}
	_, err = c.driverConn.ExecContext(ctx, "COMMIT", nil)
	return introduction{v, said[0][0], said[0][1], said[0][2]}, err
}

// prepare finds out which server it is that takes the writes of a connection, and sets up the session so that each
// statement makes sure that it runs there and means what it says. It returns an error unless the server takes writes.
func (l *Ledger) prepare(ctx context.Context, c *conn) error {
	in, err := c.introduce(ctx)
	if err != nil {
		return err
	}
	v := in.variables
	if why := unwritable(v); why != "" {
		return storekit.Unfit{Why: why}
	}
	if c.loan == nil {
		id, err := strconv.ParseUint(in.id, 10, 64)
		greeted, ok := c.line.greeted()
		c.proxied = err != nil || !ok || uint32(id) != greeted
	}
	from := in.began
	if c.proxied {
		from = "" // Behind it, the server may be another process by the next statement.
	}
	rest := strings.Join(c.settings(v, in.server, from), ", ")
	if _, err := c.driverConn.ExecContext(ctx, "SET "+rest, nil); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	c.setUp = "SET " + strings.Join(baseSettings, ", ") + ", " + rest
	if v["group_replication_consistency"] == eventual {
		// After a failover, reads wait until the new primary has what the old one had committed. If the user may not
		// set that, there is a warning: see durabilityFlaws.
		const consistent = "SESSION group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'"
		if _, err = c.driverConn.ExecContext(ctx, "SET "+consistent, nil); err == nil {
			c.setUp += ", " + consistent
		}
		if _, said := errors.AsType[*mysql.MySQLError](err); err != nil && !said {
			return fmt.Errorf("set up the session: %w", err)
		}
	}
	c.session, c.process = in.id, clockName(in.server, from)
	_, err = l.core.Moved(ctx, c.process)
	return err
}

// eventual is the value of group_replication_consistency with which a new primary is read before it has all.
const eventual = "EVENTUAL"

// unwritable says why a server with some variables takes no writes; empty if it does.
func unwritable(v map[string]string) string {
	for _, name := range []string{"read_only", "innodb_read_only"} {
		if value := v[name]; value != "" && value != "OFF" && value != "0" {
			return "the server takes no writes (" + name + " is " + value + ")"
		}
	}
	return ""
}

// The most of a value that bounds what a statement gives.
const unbounded = "18446744073709551615"

// lockSeconds is how long a statement waits for a lock. Then the server rolls it back.
const lockSeconds = "2"

// baseSettings make sessions alike, whatever the server's settings and its init_connect are.
var baseSettings = []string{
	"NAMES utf8mb4", "SESSION autocommit = 1", "SESSION time_zone = '+00:00'", "SESSION lc_messages = 'en_US'",
	// What doesn't fit is an error, and no other engine is taken.
	"SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
	// Rows that are there are given.
	"SESSION sql_select_limit = " + unbounded, "SESSION sql_big_selects = 1", "SESSION sql_safe_updates = 0", "SESSION sql_auto_is_null = 0",
	"SESSION completion_type = 0",
	// A statement that was given up here doesn't wait there for long: for the locks of rows, nor for those of tables, for which
	// servers wait a day by default.
	"SESSION innodb_lock_wait_timeout = " + lockSeconds, "SESSION lock_wait_timeout = " + lockSeconds,
}

// settings are those that set up the rest of a session, for a server with some variables, an identity, and
// the Unix time at which it was started, or an empty one.
func (c *conn) settings(v map[string]string, server, began string) []string {
	// Locks cover no gaps, and each statement sees what was committed before it. Without logs of rows, InnoDB refuses
	// writes at this level.
	isolation := "READ-COMMITTED"
	if c.statementLog {
		isolation = "REPEATABLE-READ"
	}
	names := map[bool][]string{true: {"tx_isolation", "tx_read_only"}, false: {"transaction_isolation", "transaction_read_only"}}[c.mariadb]
	set := []string{
		"SESSION " + names[0] + " = '" + isolation + "'", "SESSION " + names[1] + " = 0",
		sessionServer + " = " + literal(server), sessionClock + " = " + literal(clockName(server, began)),
	}
	if _, galera := v["wsrep_sync_wait"]; galera {
		// Reads wait until this node has what was committed on others before, and fail on one that is cut off.
		set = append(set, "SESSION wsrep_sync_wait = 1", "SESSION wsrep_dirty_reads = 0")
	}
	return set
}

// literal is a text in a statement, byte for byte.
func literal(text string) string {
	return fmt.Sprintf("CONVERT(X'%x' USING utf8mb4)", text)
}

// clockName names the process of a server with an identity that was started at a Unix time, or the server if that
// isn't known.
func clockName(server, began string) string {
	at, err := strconv.ParseInt(began, 10, 64)
	if err != nil || at <= 0 {
		return server
	}
	return server + sqldb.Since + time.Unix(at, 0).UTC().Format(time.RFC3339)
}

// serverOf is the server of a process, by its identity.
func serverOf(process string) string {
	server, _, _ := strings.Cut(process, sqldb.Since)
	return server
}
