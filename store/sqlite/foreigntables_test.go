package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A table named like a pragma is read in its place, unless the pragma is called as a function.
func TestNoTableAnswersForTheVersionOfTheSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	db := raw(t, path)
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	execute(t, db, `CREATE TABLE pragma_schema_version (schema_version INTEGER)`, `INSERT INTO pragma_schema_version VALUES (7)`)
	for seq, then := range []string{"SELECT 1", `CREATE TRIGGER forgets AFTER INSERT ON WorkerLeases BEGIN DELETE FROM WorkerLeases WHERE seq = new.seq; END`} {
		execute(t, db, then)
		if err := l.Append(t.Context(), storetest.Grant("job", int64(2+seq))); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "'pragma_schema_version'") {
			t.Errorf("Append() = %v, want a refusal that names the table", err)
		}
	}
}

func TestNoTableAnswersForTheMarksOfALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	execute(t, raw(t, path), `PRAGMA application_id = 77`, `PRAGMA user_version = 9`, createLeases, createBoot,
		`CREATE TABLE pragma_application_id AS SELECT 1936486260 AS application_id`, `CREATE TABLE pragma_user_version AS SELECT 2 AS user_version`)
	refuses(t, path, "the table 'pragma_application_id'")
}

// A table that isn't STRICT can hold keys between two numbers, which would hide the head from Tail.
func TestATableThatIsNotStrictIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	for _, seq := range []int64{1, 2, 3} {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", seq)))
	}
	execute(t, raw(t, path), "ALTER TABLE WorkerLeases RENAME TO was", strings.TrimSuffix(createLeases, " STRICT, WITHOUT ROWID"),
		"INSERT INTO WorkerLeases SELECT * FROM was WHERE seq > 1", "DROP TABLE was", "INSERT INTO WorkerLeases (workerType, seq) VALUES ('job', 3.25), ('job', 3.5)")
	refuses(t, path, "WorkerLeases isn't STRICT")
}

func TestAColumnOfTimeLinesInOtherLettersIsRead(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: bootedAt(noon, time.Hour, 0), BootID: "b"}
	want := now(t, open(t, o))
	execute(t, raw(t, o.Path), `ALTER TABLE Boot RENAME COLUMN wallOffset TO walloffset`)
	o.ReadOnly = true
	if got, err := open(t, o).Now(t.Context()); err == nil && !got.Time.Equal(want.Time) {
		t.Errorf("Now() for reading = %v with a skew of %v, want %v or an error", got.Time, got.Skew, want.Time)
	}
}

// The driver's errors are those of a fault that passes.
func TestLastingFaultsOfTheTablesAreRefusals(t *testing.T) {
	c := bootedAt(noon, time.Hour, 0)
	var o Options
	looks := func(l *Ledger) error { _, _, err := l.Tail(t.Context(), "job", 2); return err }
	restarts := func(*Ledger) error {
		other := o
		other.BootID = "the next boot"
		l, err := Open(t.Context(), other)
		if err == nil {
			_, err = l.Now(t.Context())
			_ = l.Close(t.Context())
		}
		return err
	}
	for what, x := range map[string]struct {
		statements []string
		act        func(l *Ledger) error
		healthy    bool
	}{
		"tail without the table": {[]string{"DROP TABLE WorkerLeases"}, looks, false},
		"tail without a column":  {[]string{"ALTER TABLE WorkerLeases DROP COLUMN attempt"}, looks, false},
		"a new boot with madeat": {[]string{"ALTER TABLE Boot RENAME COLUMN madeAt TO madeat"}, restarts, true},
	} {
		t.Run(what, func(t *testing.T) {
			o = Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: c, BootID: "b"}
			l := open(t, o)
			now(t, l)
			must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
			execute(t, raw(t, o.Path), x.statements...)
			if err := x.act(l); !errors.Is(err, store.ErrRefused) && !(x.healthy && err == nil) {
				t.Errorf("= %v, want an error that wraps store.ErrRefused", err)
			}
		})
	}
}

// Nothing of before the first release is read.
func TestAFileOfSchema1IsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, "Init()", open(t, Options{Path: path}).Init(t.Context()))
	execute(t, raw(t, path), "PRAGMA user_version = 1")
	refuses(t, path, "schema 1")
}

// Limits of texts are in bytes of UTF-8.
func TestADatabaseInUTF16IsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := raw(t, path)
	db.SetMaxOpenConns(1)
	execute(t, db, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE x (y)", "DROP TABLE x")
	must(t, "Close()", db.Close())
	refuses(t, path, "UTF-16le")
}

// refuses opens a file, which must be refused with a reason.
func refuses(t *testing.T, path, why string) {
	t.Helper()
	l, err := Open(t.Context(), Options{Path: path})
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), why) {
		t.Errorf("Open() = %v, want a refusal with %q", err, why)
	}
	if err == nil {
		_ = l.Close(t.Context())
	}
}
