//go:build linux

package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "modernc.org/sqlite"             // the driver

	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

// peer is a fresh database, with the fences and a table of writes.
type peer struct {
	*sql.DB
	dialect     sqlfence.Dialect
	driver, dsn string
	waiting     string // counts the transactions that wait for a lock
}

// each runs a test on PostgreSQL and on MariaDB.
func each(t *testing.T, test func(t *testing.T, p *peer)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t, openPostgres(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, openMariaDB(t)) })
}

func openPostgres(t *testing.T) *peer {
	t.Helper()
	return open(t, &peer{
		dialect: sqlfence.PostgreSQL, driver: "pgx", dsn: postgrespeer.Database(t),
		waiting: `SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE datname = current_database() AND wait_event_type = 'Lock' AND NOT granted`,
	}, "id bigserial PRIMARY KEY")
}

func openMariaDB(t *testing.T) *peer {
	t.Helper()
	return open(t, &peer{
		dialect: sqlfence.MySQL, driver: "mysql", dsn: mysqlpeer.Database(t),
		waiting: `SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
	}, "id bigint AUTO_INCREMENT PRIMARY KEY")
}

func openSQLite(t *testing.T) *peer {
	t.Helper()
	return open(t, &peer{
		dialect: sqlfence.SQLite, driver: "sqlite",
		dsn: "file:" + filepath.Join(t.TempDir(), "a.db") + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)",
	}, "id INTEGER PRIMARY KEY")
}

func open(t *testing.T, p *peer, id string) *peer {
	t.Helper()
	db, err := sql.Open(p.driver, p.dsn)
	must(t, err)
	p.DB = db
	t.Cleanup(func() { _ = db.Close() })
	for _, s := range []string{
		sqlfence.Schema(p.dialect),
		"CREATE TABLE writes (" + id + ", name varchar(50), token bigint)",
		"CREATE TABLE late (name varchar(50), token bigint)", // without a fence
		"CREATE TABLE bystander (token bigint)",
	} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// insert records a write. Its id has the order of the fence's lock, which it comes after.
func insert(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO writes (name, token) VALUES ('%s', %d)", name, token))
	return err
}

// wrote fails the test unless the tokens of all writes are these.
func (p *peer) wrote(t *testing.T, name string, want ...int64) {
	t.Helper()
	if found := p.tokens(t, "writes", name, "id"); !slices.Equal(found, want) {
		t.Errorf("the tokens of the writes are %v, want %v", found, want)
	}
}

func (p *peer) tokens(t *testing.T, table, name, order string) (found []int64) {
	t.Helper()
	rows, err := p.QueryContext(t.Context(), fmt.Sprintf("SELECT token FROM %s WHERE name = '%s' ORDER BY %s", table, name, order))
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var token int64
		must(t, rows.Scan(&token))
		found = append(found, token)
	}
	must(t, rows.Err())
	return found
}

// awaitWaiter returns when the server says that a transaction waits for a lock. It asks
// rarely, and never at once, since InnoDB repeats its last answer, which may be about an
// earlier transaction, unless nobody has asked for 100 ms.
func (p *peer) awaitWaiter(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		time.Sleep(150 * time.Millisecond)
		var n int
		must(t, p.QueryRowContext(t.Context(), p.waiting).Scan(&n))
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits")
}

// beginAnew reports whether err asks to run the whole transaction again: a serialization
// failure of PostgreSQL, a deadlock of MariaDB.
func beginAnew(err error) bool {
	var state interface{ SQLState() string }
	var my *mysql.MySQLError
	return errors.As(err, &state) && state.SQLState() == "40001" || errors.As(err, &my) && my.Number == 1213
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
