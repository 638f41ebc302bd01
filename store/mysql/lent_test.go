package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// pooled is a pool of an application, of as many connections as are said, and its database.
func pooled(t testing.TB, dsn string, most int, settings ...string) (*sql.DB, string) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn + "?" + strings.Join(settings, "&"))
	must(t, "ParseDSN()", err)
	c, err := mysql.NewConnector(config)
	must(t, "NewConnector()", err)
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(most)
	t.Cleanup(func() { _ = db.Close() })
	return db, config.DBName
}

// theirs are settings of an application's sessions.
var theirs = []string{
	"charset=latin1", "sql_mode=%27%27", "time_zone=%27-03:00%27", "tx_isolation=%27SERIALIZABLE%27", "sql_select_limit=100", "innodb_lock_wait_timeout=7",
	"completion_type=%27CHAIN%27", "sql_safe_updates=1", "clientFoundRows=true", "parseTime=true",
}

// The sessions of an application, with settings of its own.
func TestConformanceOnAnApplicationsPool(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		db, name := pooled(t, dsn, 4, theirs...)
		o := Options{DB: db, Database: name, Table: newTable()}
		h := harness(t, dsn, o.Table, 20)
		h.Open = func(t testing.TB) store.Ledger {
			t.Helper()
			return opened(t, o)
		}
		h.Skips = maps.Clone(skips)
		h.Skips["two paths"] = "TestConformance has them"
		return h
	})
}

// session are the settings of a pool's connection.
func session(t *testing.T, db *sql.DB) string {
	t.Helper()
	c, err := db.Conn(within(t))
	must(t, "Conn()", err)
	defer func() { _ = c.Close() }()
	var text strings.Builder
	must(t, "Query()", sqldb.Each(within(t), c, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		fmt.Fprintln(&text, name, value)
		return err
	}, "SELECT LOWER(VARIABLE_NAME), COALESCE(VARIABLE_VALUE, 'NULL') FROM information_schema.SESSION_VARIABLES WHERE VARIABLE_NAME NOT IN ('TIMESTAMP', 'RAND_SEED1', 'RAND_SEED2', 'LAST_GTID', 'GTID_CURRENT_POS', 'GTID_BINLOG_POS', 'GTID_BINLOG_STATE')"+
		" UNION ALL SELECT 'session', CONCAT(CONNECTION_ID(), COALESCE(@slotlease_server, ' unknown'), COALESCE(@slotlease_clock, ' unknown'), @@in_transaction) ORDER BY 1 LIMIT 100000"))
	return text.String()
}

func TestTheApplicationsPoolStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"prepared": theirs, "interpolated": append([]string{"interpolateParams=true"}, theirs[1:]...)} {
		t.Run(name, func(t *testing.T) {
			db, database := pooled(t, mysqlpeer.Database(t), 1, settings...)
			before := session(t, db)
			if !strings.Contains(before, "time_zone -03:00") {
				t.Fatalf("the session is %s, want the application's settings", before)
			}
			l := initialised(t, Options{DB: db, Database: database, Table: newTable()})
			for seq := range int64(5) {
				must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq+1)))
				_, _, err := l.Tail(within(t), "job", 3)
				must(t, "Tail()", err)
			}
			_, err := l.Trim(within(t), "job", 3)
			must(t, "Trim()", err)
			found, err := l.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, CheckPool, store.LevelSkip, "the servers that DB may lead to aren't known")
			documenttest.Finds(t, found, store.CheckTLS, store.LevelSkip, "the application's pool")
			if diff := cmp.Diff(before, session(t, db)); diff != "" {
				t.Errorf("the session isn't as it was before: %s", diff)
			}
			must(t, "Close()", l.Close(within(t)))
			if diff := cmp.Diff(before, session(t, db)); diff != "" || db.Stats().InUse != 0 {
				t.Errorf("the session isn't as it was after Close: %s; %d in use", diff, db.Stats().InUse)
			}
		})
	}
}

func TestAPoolThatIsExhaustedIsNamed(t *testing.T) {
	t.Parallel()
	db, database := pooled(t, mysqlpeer.Database(t), 1)
	l := initialised(t, Options{DB: db, Database: database, Table: newTable()})
	documenttest.IsExhausted(t, l, func() func() {
		c, err := db.Conn(within(t))
		must(t, "Conn()", err)
		return func() { _ = c.Close() }
	}, "its MaxOpenConns is 1")
}

func TestALedgerSaysThatItsPoolIsClosed(t *testing.T) {
	t.Parallel()
	db, database := pooled(t, mysqlpeer.Database(t), 1)
	documenttest.EndsWithItsPool(t, initialised(t, Options{DB: db, Database: database, Table: newTable()}), func() { must(t, "Close()", db.Close()) })
}

func TestHowManyConnectionsAreLentAtOnce(t *testing.T) {
	t.Parallel()
	db, database := pooled(t, mysqlpeer.Database(t), 10)
	l := initialised(t, Options{DB: db, Database: database, Table: newTable(), MaxConns: 3})
	// A session is made what it was after the next operation may have begun.
	documenttest.LendsFew(t, l, 6, func() int { return db.Stats().InUse })
}

func TestAPoolThatIsUnfitIsRefused(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	db, database := pooled(t, dsn, 2, "autocommit=0")
	l := opened(t, Options{DB: db, Database: database})
	_, _, err := l.Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() without autocommit", err, store.ErrRefused, "autocommit off: leave it as servers have it")
	db, database = pooled(t, dsn, 2, "unique_checks=0")
	_, _, err = opened(t, Options{DB: db, Database: database}).Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() without checks", err, store.ErrRefused, "unique_checks off")
	db, database = pooled(t, dsn, 2, "sql_select_limit=3")
	_, _, err = opened(t, Options{DB: db, Database: database}).Tail(within(t), "job", 1)
	documenttest.Says(t, "Tail() with a limit", err, store.ErrRefused, "sql_select_limit")

	db, database = pooled(t, dsn, 1)
	l = initialised(t, Options{DB: db, Database: database, Table: newTable()})
	_, err = db.ExecContext(within(t), "START TRANSACTION")
	must(t, "START TRANSACTION", err)
	_, err = l.Now(within(t))
	documenttest.Says(t, "Now() in a transaction", err, store.ErrNotStored, "a transaction under way")
	_, err = l.Now(within(t))
	must(t, "Now()", err)
}

func TestAPasswordThatChangesIsAskedFor(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	p := dsnParts.FindStringSubmatch(mysqlpeer.Role(t, dsn, "ALL ON *"))
	user, table := p[1], newTable()
	documenttest.AsksForPasswords(t, func(ask func(context.Context) (string, error)) store.Ledger {
		return opened(t, Options{URI: fmt.Sprintf("mysql://%s@%s/%s", user, p[3], p[4]), Table: table, PasswordFunc: ask})
	}, func(to string) { execute(t, dsn, fmt.Sprintf("ALTER USER '%s' IDENTIFIED BY '%s'", user, to)) }, func() {
		var ids []string
		must(t, "PROCESSLIST", sqldb.Each(within(t), past(t, dsn), func(rows *sql.Rows) error {
			ids = append(ids, "")
			return rows.Scan(&ids[len(ids)-1])
		}, "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ?", user))
		for _, id := range ids {
			_, _ = past(t, dsn).ExecContext(within(t), "KILL "+id) // It may have gone.
		}
	})
}

func TestAPoolAndADatabaseGoTogether(t *testing.T) {
	t.Parallel()
	db, _ := pooled(t, mysqlpeer.Database(t), 1)
	for says, o := range map[string]Options{
		"leave them out":     {DB: db, Database: "d", URI: "mysql://h/d"},
		"Database must be":   {DB: db, Database: "a`b"},
		"Database is for DB": {URI: "mysql://u:p@h/d", Database: "e"},
	} {
		_, err := Open(t.Context(), o)
		documenttest.Says(t, "Open()", err, nil, says)
	}
}

// A password that is changed, or a server whose users aren't loaded yet, denies a login for a moment. No right is missing for that.
func TestALoginThatIsDeniedLacksNoRight(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	c, err := mysql.ParseDSN(mysqlpeer.Role(t, dsn, "ALL ON *.*"))
	must(t, "ParseDSN()", err)
	c.Passwd = "old"
	stale, name := pooled(t, c.FormatDSN(), 2)
	for what, o := range map[string]Options{
		"of a URI":  {URI: fmt.Sprintf("mysql://%s:%s@%s/%s", c.User, c.Passwd, c.Addr, name)},
		"of a pool": {DB: stale, Database: name},
	} {
		err := opened(t, o).CheckRights(within(t))
		documenttest.Is(t, "CheckRights() "+what, err, store.ErrDenied)
		if errors.Is(err, store.ErrFinal) {
			t.Errorf("CheckRights() %s = %v, want that it may pass", what, err)
		}
	}
}
