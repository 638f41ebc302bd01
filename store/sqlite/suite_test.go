package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var must, wantErr = documenttest.Must, documenttest.Is

func TestTheLedgerKeepsTheContractOfAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		path := filepath.Join(t.TempDir(), "ledger.db")
		rounds := 400 // make soak runs 1,000.
		if testing.Short() || race.Enabled || suites.Quick() {
			rounds = 50
		}
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return open(t, Options{Path: path})
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				return open(t, Options{Path: path, ReadOnly: true})
			},
			OpenElsewhere: elsewhere(path),
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				plant(t, path, workerType, seq, fields)
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				plantPresence(t, path, workerType, id, fields)
			},
			PlantUnique: func(t testing.TB) {
				t.Helper()
				execute(t, raw(t, path), `CREATE UNIQUE INDEX planted_unique ON WorkerLeases (workerType)`)
			},
			PlantTrigger: func(t testing.TB) {
				t.Helper()
				execute(t, raw(t, path), `CREATE TRIGGER planted_trigger BEFORE INSERT ON WorkerLeases BEGIN SELECT RAISE(IGNORE); END`)
			},
			Skips: map[string]string{
				"planted documents/*has a Defect*/*":               "columns have types, and those of the key are the key",
				"planted documents/information of a wrong type*/*": "columns have types",
			},
			FreeStamp: true,
			Rounds:    rounds,
		}
	})
}

// elsewhere opens a ledger by a hard link, where those are noticed.
func elsewhere(path string) func(t testing.TB) (store.Ledger, error) {
	if runtime.GOOS == "windows" {
		return nil
	}
	return func(t testing.TB) (store.Ledger, error) {
		t.Helper()
		must(t, "Link()", os.Link(path, path+".link"))
		return Open(t.Context(), Options{Path: path + ".link"})
	}
}

// open returns a ledger that is closed with the test.
func open(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%q) = %v, want nil", o.Path, err)
	}
	t.Cleanup(func() {
		if err := l.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("Close() = %v, want nil", err)
		}
	})
	return l
}

// raw returns a connection to a file that knows nothing of ledgers.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := connect(path, "mode=rwc&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatalf("connect(%q) = %v", path, err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// asked is the one value that a query gives on a raw connection.
func asked[T any](t testing.TB, path, query string) (v T) {
	t.Helper()
	db := raw(t, path)
	must(t, query, db.QueryRowContext(t.Context(), query).Scan(&v))
	must(t, "Close()", db.Close())
	return v
}

// execute runs statements on a raw connection.
func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func plant(t testing.TB, path, workerType string, seq int64, fields map[string]any) {
	t.Helper()
	must(t, "Init()", open(t, Options{Path: path}).Init(t.Context()))
	db := raw(t, path)
	row := map[string]any{"workerType": workerType, "seq": seq}
	maps.Copy(row, fields)
	for name, empty := range map[string]any{"orders": "", "spared": int64(0), "work": ""} { // They have no column of their own.
		value, has := row[name]
		if delete(row, name); !has {
			continue
		}
		worker, _ := row["worker"].(map[string]any)
		if worker == nil && (value != empty || row["worker"] == nil) {
			worker = map[string]any{}
		}
		if worker = maps.Clone(worker); worker != nil {
			worker[name] = value
			row["worker"] = worker
		}
	}
	kinds := map[string]string{}
	for _, c := range columns {
		kinds[c.name] = c.kind
	}
	var names, marks []string
	var values []any
	for _, name := range slices.Sorted(maps.Keys(row)) {
		kind, known := kinds[name]
		if !known {
			// A field of a later version is a column of a later version. It may be
			// there from an earlier call.
			kind = "ANY"
			_, _ = db.ExecContext(t.Context(), fmt.Sprintf("ALTER TABLE WorkerLeases ADD COLUMN %q ANY", name))
		}
		v, ok := express(t, name, kind, row[name])
		// The columns of the key are the key: they can't contradict it.
		if !ok || name == "workerType" && v != workerType || name == "seq" && v != seq {
			t.Skipf("column %s %s can't hold %T %v here", name, kind, row[name], row[name])
		}
		names, marks, values = append(names, fmt.Sprintf("%q", name)), append(marks, "?"), append(values, v)
	}
	insert := fmt.Sprintf("INSERT INTO WorkerLeases (%s) VALUES (%s)", strings.Join(names, ", "), strings.Join(marks, ", "))
	if _, err := db.ExecContext(t.Context(), insert, values...); err != nil {
		t.Fatalf("Plant(%s, %d): %v", workerType, seq, err)
	}
}

// express gives the SQL value of a JSON-like value, if a column can hold it.
func express(t testing.TB, name, kind string, v any) (any, bool) {
	t.Helper()
	base, notNull := strings.CutSuffix(kind, " NOT NULL")
	switch x := v.(type) {
	case nil:
		return nil, !notNull
	case string:
		return x, base != "INTEGER"
	case int, int64:
		return x, base != "TEXT"
	case time.Time:
		return x.UnixMilli(), base != "TEXT"
	case map[string]any:
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatalf("json.Marshal(%v) = %v", x, err)
		}
		return string(text), base == "ANY" || name == "worker"
	default:
		return v, base == "ANY"
	}
}
