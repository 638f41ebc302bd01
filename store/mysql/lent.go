package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// borrow makes a connection of one that the application's pool lends: its session is set up for the time of the loan.
func (l *Ledger) borrow(ctx context.Context) (driver.Conn, error) {
	return l.core.Borrow(ctx, CheckPool, "open DB with github.com/go-sql-driver/mysql", func(loan *sqldb.Loan) (sqldb.Lent, bool) {
		own, ok := loan.Conn.(driverConn)
		// Whether something is between here and the server the driver's greeting would tell, which isn't known here.
		k := &conn{driverConn: own, loan: loan, clock: l.clock, used: l.core.Used, proxied: true}
		return sqldb.Lent{
			Conn: k, Accept: func(ctx context.Context) error { return l.accept(ctx, k) }, Spoil: func() { k.bad = true; _ = k.Close() },
		}, ok && strings.HasPrefix(fmt.Sprintf("%T", own), "*mysql.")
	})
}

// lentSettings are those of a session that statements need otherwise, of which all servers have the first allHave.
var lentSettings = []string{
	"character_set_client", "character_set_results", "collation_connection", "time_zone", "lc_messages", "sql_mode",
	"sql_select_limit", "sql_big_selects", "sql_safe_updates", "sql_auto_is_null", "completion_type", "innodb_lock_wait_timeout", "lock_wait_timeout",
	"tx_isolation", "tx_read_only", "transaction_isolation", "transaction_read_only", "wsrep_sync_wait", "wsrep_dirty_reads", "group_replication_consistency",
}

const (
	allHave = 13
	// mostLent bounds the connections that are known. The application closes them without a word.
	mostLent = 64
)

// lentState decides whether a connection is used, and says whether it leads where it did.
var lentState = []string{"autocommit", "unique_checks", "sql_log_bin", "in_transaction", "read_only", "innodb_read_only", "hostname", "port", "server_id"}

var digits = regexp.MustCompile(`^[0-9]+$`)

// accept sets up the session of a connection that is lent, and notes how it was.
func (l *Ledger) accept(ctx context.Context, c *conn) error {
	was, err := c.variables(ctx, append(lentState, lentSettings...)...)
	unfit := func(setting string) error {
		return storekit.Final(storekit.Flaw{Check: CheckPool, What: "the connections of the application's pool have " + setting, Remedy: "leave it as servers have it, or give URI"}.Refuse())
	}
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(lentSettings[:allHave], func(name string) bool { _, shown := was[name]; return !shown }):
		return unfit("an sql_select_limit that hides their settings")
	case was["in_transaction"] == "1":
		return errors.New("the application's pool lends a connection with a transaction under way, which is rolled back")
	}
	for _, name := range lentState[:3] {
		if was[name] != "ON" {
			return unfit(name + " off")
		}
	}
	if why := unwritable(was); why != "" {
		return storekit.Unfit{Why: why}
	}
	c.restore = "SET " + sessionServer + " = NULL, " + sessionClock + " = NULL"
	for _, name := range lentSettings {
		value, there := was[name]
		switch {
		case !there:
			continue
		case value == "" && name == "character_set_results":
			value = "NULL"
		case !digits.MatchString(value):
			value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
		}
		c.restore += ", SESSION " + name + " = " + value
	}
	l.lending.Lock()
	known := l.lent[c.driverConn]
	l.lending.Unlock()
	server := was["hostname"] + ":" + was["port"] + " " + was["server_id"]
	if known != nil && known.server == server {
		again := *known
		again.loan, again.restore, again.bad = c.loan, c.restore, false
		*c = again
		_, err := c.driverConn.ExecContext(ctx, c.setUp, nil)
		return err
	}
	if err := l.prepare(ctx, c); err != nil {
		return err
	}
	c.server = server
	seen := *c
	l.lending.Lock()
	defer l.lending.Unlock()
	if l.lent == nil || len(l.lent) >= mostLent {
		l.lent = map[driverConn]*conn{}
	}
	l.lent[c.driverConn] = &seen
	return nil
}

// giveBack makes the session what it was, and gives the connection back.
func (c *conn) giveBack() error {
	sqldb.GiveBack(c.loan, c.clock, c.IsValid, func(ctx context.Context) error {
		_, err := c.driverConn.ExecContext(ctx, c.restore, nil)
		return err
	})
	return nil
}
