package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// schema1 are the statements that the first version of this package made a
// ledger with.
var schema1 = []string{
	`CREATE TABLE WorkerLeases ("workerType" TEXT NOT NULL, "seq" INTEGER NOT NULL, "kind" TEXT, "instanceId" TEXT, "group" TEXT, ` +
		`"claim" TEXT, "priority" INTEGER, "slotStart" INTEGER, "slotEnd" INTEGER, "windowStart" INTEGER, "windowEnd" INTEGER, ` +
		`"token" INTEGER, "schedule" TEXT, "fixedAt" INTEGER, "readAt" INTEGER, "worker" TEXT, "metadata" TEXT, ` +
		`PRIMARY KEY (workerType,seq)) STRICT, WITHOUT ROWID`,
	`CREATE TABLE Boot (id TEXT NOT NULL PRIMARY KEY, wallOffset INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
	`PRAGMA application_id = 1936486260`,
	`PRAGMA user_version = 1`,
	`PRAGMA journal_mode = WAL`,
}

// insertSchema1 is how that version appended.
const insertSchema1 = `INSERT INTO WorkerLeases ("workerType", "seq", "kind", "instanceId", "group", "claim", "priority", "slotStart", ` +
	`"slotEnd", "windowStart", "windowEnd", "token", "schedule", "fixedAt", "readAt", "worker", "metadata") ` +
	`VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// recordSchema1 is what that version could say of a grant.
func recordSchema1(seq int64) store.Record {
	r := storetest.Grant("job", seq)
	r.DoneUntil, r.Attempt = time.Time{}, 0
	return r
}

// old is the path of a ledger of schema 1 with three records, at rest.
func old(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := raw(t, path)
	execute(t, db, schema1...)
	for seq := int64(1); seq <= 3; seq++ {
		must(t, "ExecContext()", documenttest.ErrorOf(db.ExecContext(t.Context(), insertSchema1, rowOf(t, recordSchema1(seq))[:17]...)))
	}
	must(t, "Close()", db.Close())
	return path
}

// version is the user_version of a file.
func version(t *testing.T, path string) int {
	t.Helper()
	return asked[int](t, path, "PRAGMA user_version")
}

// layout are the columns of WorkerLeases in a file.
func layout(t *testing.T, path string) string {
	t.Helper()
	return asked[string](t, path, `SELECT group_concat(cid || ' ' || name || ' ' || type || ' ' || "notnull" || ' ' || pk, '; ') FROM pragma_table_info('WorkerLeases')`)
}

// wantThree demands the records of old, below those that came later.
func wantThree(t *testing.T, l *Ledger, later ...store.Record) {
	t.Helper()
	got, _, err := l.Tail(t.Context(), "job", 99)
	want := append(slices.Clone(later), recordSchema1(3), recordSchema1(2), recordSchema1(1))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Tail() = %+v, %v, want %+v", got, err, want)
	}
	if got, err := l.Get(t.Context(), "job", 2); err != nil || got != recordSchema1(2) {
		t.Errorf("Get(job, 2) = %+v, %v, want %+v", got, err, recordSchema1(2))
	}
}

func TestAFileOfAnEarlierVersionIsUpgradedByWhateverIsDoneFirst(t *testing.T) {
	for name := range documenttest.Operations(nil, store.Record{}) {
		t.Run(name, func(t *testing.T) {
			path := old(t)
			before := listing(t, filepath.Dir(path))
			l := open(t, Options{Path: path})
			sameListing(t, "Open()", listing(t, filepath.Dir(path)), before)
			must(t, name+"()", documenttest.Operations(l, storetest.Grant("other", 1))[name](t.Context()))
			wantThree(t, l)
			fourth := storetest.Grant("job", 4)
			wantErr(t, "Append()", l.Append(t.Context(), fourth), nil)
			wantErr(t, "Append() at a key of the earlier version", l.Append(t.Context(), storetest.Grant("job", 3)), store.ErrConflict)
			wantThree(t, l, fourth)
			wantThree(t, open(t, Options{Path: path}), fourth)
			wantThree(t, open(t, Options{Path: path, ReadOnly: true}), fourth)
			if got, want := layout(t, path), layout(t, grown(t)); got != want || version(t, path) != schemaVersion {
				t.Errorf("an upgraded file has schema %d with %s, want that of a new one, %d with %s", version(t, path), got, schemaVersion, want)
			}
		})
	}
}

func TestAFileOfAnEarlierVersionIsReadAsItIsByAReadOnlyHandle(t *testing.T) {
	path := old(t)
	before := listing(t, filepath.Dir(path))
	l := open(t, Options{Path: path, ReadOnly: true})
	wantThree(t, l)
	wantErr(t, "Append() of a read-only ledger", l.Append(t.Context(), storetest.Grant("job", 4)), store.ErrDenied)
	must(t, "Close()", l.Close(t.Context()))
	sameListing(t, "a read-only ledger", listing(t, filepath.Dir(path)), before)

	l = open(t, Options{Path: path, ReadOnly: true})
	wantThree(t, l)
	fourth := storetest.Grant("job", 4)
	must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), fourth))
	// The handle was there before the upgrade.
	wantThree(t, l, fourth)
}

func TestAProcessOfTheEarlierVersionCarriesOnDuringAnUpgrade(t *testing.T) {
	path := old(t)
	before := raw(t, path)
	var seq int64
	must(t, "the head", before.QueryRowContext(t.Context(), `SELECT max("seq") FROM WorkerLeases`).Scan(&seq))
	documenttest.Equal(t, "the head", seq, 3)
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	wantErr(t, "an append of the earlier version after the upgrade", documenttest.ErrorOf(before.ExecContext(t.Context(), insertSchema1, rowOf(t, recordSchema1(4))[:17]...)), nil)
	wantThree(t, l, recordSchema1(4))
}

func TestAnUpgradeThatCanNotBeDoneChangesNothing(t *testing.T) {
	path := old(t)
	before := version(t, path)
	l := open(t, Options{Path: path, BusyTimeout: 20 * time.Millisecond})
	release := hold(t, path)
	documenttest.Says(t, "Init() while the file is locked", l.Init(t.Context()), nil, "locked by another process")
	wantThree(t, open(t, Options{Path: path, ReadOnly: true}))
	release()
	documenttest.Equal(t, "user_version after an upgrade that was held up", version(t, path), before)
	if err := l.Init(t.Context()); err != nil || version(t, path) != schemaVersion {
		t.Errorf("Init() after the lock was released = %v, user_version %d, want %d", err, version(t, path), schemaVersion)
	}
}

func TestAnUpgradeThatACrashInterruptedIsDoneAgain(t *testing.T) {
	// With a journal, as an administrator leaves it who ended WAL mode.
	before := old(t)
	statements, err := upgrade(t.Context(), raw(t, before))
	must(t, "upgrade()", err)
	file, journal := interrupted(t, before, statements...)
	path := crashed(t, file, journal)
	l := open(t, Options{Path: path})
	wantThree(t, l)
	wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 4)), nil)
	wantThree(t, l, storetest.Grant("job", 4))
}

func TestAnUpgradeMakesNoLedgerOfAFileThatTookThePlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := establish(t.Context(), path, false); err == nil {
		t.Error("establish() of a missing file that may not be made anew = nil, want an error")
	}
	content(nil)(t, path)
	wantErr(t, "establish() of an empty file that may not be made anew", establish(t.Context(), path, false), store.ErrMissing)
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Errorf("the file has %d bytes, %v, want it left empty", len(b), err)
	}
}
