package storekit

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// plain is a dialect of SQLite, without its store's care for files, processes and clocks.
var plain = Dialect{
	Create: []string{
		`CREATE TABLE IF NOT EXISTS ledger (worker_type TEXT NOT NULL, seq INTEGER NOT NULL, document TEXT, PRIMARY KEY (worker_type, seq))`,
		`CREATE TABLE IF NOT EXISTS roster (worker_type TEXT NOT NULL, id TEXT NOT NULL, document TEXT, PRIMARY KEY (worker_type, id))`,
	},
	Insert: Statement{Text: `INSERT INTO ledger VALUES (?1, ?2, ?3) ON CONFLICT (worker_type, seq) DO NOTHING`},
	Get:    Statement{Text: `SELECT document FROM ledger WHERE worker_type = ?1 AND seq = ?2`},
	Tail: Statement{Text: `SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER), seq, document FROM (SELECT 1) LEFT JOIN (
		SELECT * FROM (SELECT seq, document FROM ledger WHERE worker_type = ?1 AND seq BETWEEN 1 AND 9007199254740990 ORDER BY seq DESC LIMIT ?2)
		UNION ALL SELECT * FROM (SELECT seq, document FROM ledger WHERE worker_type = ?1 AND seq > 9007199254740990 LIMIT 1)) ON true`},
	Page: Statement{Text: `SELECT seq, document FROM ledger WHERE worker_type = ?1 AND seq > ?2 AND seq <= 9007199254740990 ORDER BY seq LIMIT ?3`},
	Trim: Statement{Text: `DELETE FROM ledger WHERE worker_type = ?1 AND seq IN (SELECT seq FROM ledger WHERE worker_type = ?1 AND seq < min(?2,
		(SELECT max(seq) FROM ledger WHERE worker_type = ?1 AND seq BETWEEN 1 AND 9007199254740990)) ORDER BY seq LIMIT ?3)`},
	WorkerTypes: Statement{Text: `SELECT DISTINCT worker_type FROM ledger`},
	Now:         Statement{Text: `SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)`},
	Attend:      Statement{Text: `INSERT INTO roster VALUES (?1, ?2, ?3) ON CONFLICT (worker_type, id) DO UPDATE SET document = excluded.document`},
	Leave:       Statement{Text: `DELETE FROM roster WHERE worker_type = ?1 AND id = ?2`},
	Presences:   Statement{Text: `SELECT worker_type, id, document FROM roster WHERE ? IN ('', worker_type)`},
}

func TestALedgerInTablesKeepsTheContractOfAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dsn := "file:" + filepath.Join(t.TempDir(), "ledger.db") + "?_pragma=busy_timeout(30000)&_pragma=synchronous(off)"
		connect := func(t testing.TB) *sql.DB {
			t.Helper()
			db, err := sql.Open("sqlite", dsn)
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		exec := func(t testing.TB, text string, args ...any) {
			t.Helper()
			db := connect(t)
			defer func() { _ = db.Close() }()
			if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		exec(t, "PRAGMA journal_mode = wal") // Once: while many connections do it, SQLite waits for none, and fails.
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return NewSQL(SQLOptions{DB: connect(t), Dialect: plain, Server: "file", Granularity: time.Millisecond, Runner: NewRunner(RunnerOptions{Store: "plain", Meaning: func(err error) Meaning {
					if err.Error() == "SQL logic error: no such table: ledger (1)" || err.Error() == "SQL logic error: no such table: roster (1)" {
						return Meaning{Is: store.ErrMissing}
					}
					return Meaning{}
				}})})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				exec(t, `INSERT INTO ledger VALUES (?, ?, ?)`, workerType, seq, string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				exec(t, `INSERT OR REPLACE INTO roster VALUES (?, ?, ?)`, workerType, id, string(storetest.Document(t, map[string]any{"id": PresenceKey(workerType, id), "workerType": workerType}, fields)))
			},
			Skips: map[string]string{
				"readers": "all handles may write", "attendance/a reader*": "all handles may write",
				"watch": "it gives no hints", "two paths": "there is one", "foreign constraints": "nobody else gives it any",
			},
			FreeStamp: true,
			Rounds:    100,
		}
	})
}
