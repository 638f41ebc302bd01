package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var must = documenttest.Must

var within = suites.Deadline

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// initialised is an opened ledger that is initialised.
func initialised(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t)))
	return l
}

// dsnParts are those of a DSN of mysqlpeer.
var dsnParts = regexp.MustCompile(`^(\w+)(:\w*)?@tcp\(([^)]*)\)/(\w*)$`)

// uriOf is the URI of a ledger at a DSN of mysqlpeer.
func uriOf(t testing.TB, dsn string) string {
	t.Helper()
	p := dsnParts.FindStringSubmatch(dsn)
	if p == nil {
		t.Fatalf("%q is no DSN of mysqlpeer", dsn)
	}
	return fmt.Sprintf("mysql://%s%s@%s/%s", p[1], p[2], p[3], p[4])
}

// shared is a pool of connections past the ledgers, to the database of each DSN.
var shared sync.Map

// past is a pool past the ledgers.
func past(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	must(t, "ParseDSN()", err)
	config.Logger = &mysql.NopLogger{}
	c, err := mysql.NewConnector(config)
	must(t, "NewConnector()", err)
	fresh := sql.OpenDB(c)
	fresh.SetMaxOpenConns(8)
	db, there := shared.LoadOrStore(dsn, fresh)
	if there {
		_ = fresh.Close()
	}
	return db.(*sql.DB)
}

// execute executes a statement past the ledger.
func execute(t testing.TB, dsn, text string, args ...any) {
	t.Helper()
	_, err := past(t, dsn).ExecContext(context.WithoutCancel(t.Context()), text, args...)
	must(t, text, err)
}

var newTable = documenttest.NewTable

// skips are what the store can't express.
var skips = map[string]string{
	"watch": "there are no hints",
	"hostile names from outside/*/plant long *": "the column of names has 255 bytes",
}

// A worker that has the rights it needs, and no others, in tables that an administrator has made by the client mariadb.
func TestConformance(t *testing.T) {
	suites.SharedKit(t, "store/postgres")
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		table := newTable()
		h := harness(t, dsn, table, 100)
		worker := ""
		h.InitFirst = func(t testing.TB) {
			t.Helper()
			worker = uriOf(t, mysqlpeer.Role(t, dsn))
			mysqlpeer.Exec(t, dsn, opened(t, Options{URI: worker, Table: table}).InitScript())
		}
		h.Open = func(t testing.TB) store.Ledger {
			t.Helper()
			return opened(t, Options{URI: cmp.Or(worker, uriOf(t, dsn)), Table: table})
		}
		h.OpenElsewhere = func(t testing.TB) (store.Ledger, error) {
			t.Helper()
			return Open(t.Context(), Options{URI: strings.Replace(uriOf(t, dsn), "127.0.0.1", "localhost", 1), Table: table})
		}
		return h
	})
}

// harness is one on an empty table of a database.
func harness(t testing.TB, dsn, table string, rounds int) storetest.Harness {
	o := Options{URI: uriOf(t, dsn), Table: table}
	reading := ""
	return storetest.Harness{
		Open: func(t testing.TB) store.Ledger {
			t.Helper()
			return opened(t, o)
		},
		OpenReading: func(t testing.TB) store.Ledger {
			t.Helper()
			if reading == "" {
				reading = uriOf(t, mysqlpeer.Role(t, dsn, "SELECT ON "+table, "SELECT ON "+table+sqldb.RosterSuffix))
			}
			return opened(t, Options{URI: reading, Table: table})
		},
		Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
			t.Helper()
			if len(workerType) > 255 {
				t.Skip("the column of names has 255 bytes")
			}
			execute(t, dsn, fmt.Sprintf("INSERT INTO %s VALUES (?, ?, ?)", table),
				workerType, seq, string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
		},
		PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
			t.Helper()
			execute(t, dsn, fmt.Sprintf("REPLACE INTO %s_roster VALUES (?, ?, ?)", table),
				workerType, id, string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields)))
		},
		PlantUnique: func(t testing.TB) {
			t.Helper()
			execute(t, dsn, fmt.Sprintf("CREATE UNIQUE INDEX planted_unique ON %s (worker_type)", table))
		},
		PlantTrigger: func(t testing.TB) {
			t.Helper()
			execute(t, dsn, fmt.Sprintf("CREATE TRIGGER planted_trigger_%[1]s BEFORE INSERT ON %[1]s FOR EACH ROW SET NEW.worker_type = CONCAT('.', UUID())", table))
		},
		FreeStamp: true,
		Rounds:    rounds,
		Skips:     skips,
	}
}

// awaits waits until a query gives a value.
func awaits(t *testing.T, dsn, query, want string) {
	t.Helper()
	suites.Eventually(t, query+" is "+want, func() bool {
		got := ""
		_ = past(t, dsn).QueryRowContext(t.Context(), query).Scan(&got)
		return got == want
	})
}
