package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// meddlers are changes of a ledger from outside that keep records out, change them or delete
// them, and what names each.
var meddlers = map[string]string{
	`CREATE UNIQUE INDEX "one claim" ON WorkerLeases (claim)`:                                                                 "'one claim'",
	`CREATE UNIQUE INDEX part ON WorkerLeases (workerType) WHERE seq > 0 AND workerType = 'other'`:                            "'part'",
	`CREATE TRIGGER drops BEFORE INSERT ON WorkerLeases BEGIN SELECT RAISE(IGNORE); END`:                                      "'drops'",
	`CREATE TRIGGER forbids BEFORE INSERT ON workerleases BEGIN SELECT RAISE(ABORT, 'no'); END`:                               "'forbids'",
	`CREATE TRIGGER forgets AFTER INSERT ON WorkerLeases BEGIN DELETE FROM WorkerLeases WHERE seq = new.seq; END`:             "'forgets'",
	`CREATE INDEX quick ON WorkerLeases (instanceId)`:                                                                         "'quick'",
	`CREATE INDEX "an expression" ON WorkerLeases (json_extract(iif(workerType = 'other' AND seq > 1, '{', '{}'), '$.a'))`:    "'an expression'",
	`CREATE TRIGGER elsewhere AFTER INSERT ON WorkerLeases BEGIN INSERT INTO gone VALUES (1); END`:                            "'elsewhere'",
	`CREATE TRIGGER wipes AFTER DELETE ON WorkerLeases BEGIN DELETE FROM WorkerLeases WHERE workerType = old.workerType; END`: "'wipes'",
	`CREATE TRIGGER turns AFTER UPDATE ON Boot BEGIN DELETE FROM Boot; END`:                                                   "'turns'",
	`CREATE UNIQUE INDEX apart ON Boot (wallOffset)`:                                                                          "'apart'",
	`ALTER TABLE WorkerLeases ADD COLUMN tax INTEGER CHECK (tax > 1)`:                                                         "CHECK",
	`ALTER TABLE WorkerLeases ADD COLUMN owner TEXT REFERENCES Boot (id)`:                                                     "REFERENCES",
	`ALTER TABLE WorkerLeases ADD COLUMN sum INTEGER GENERATED ALWAYS AS (seq + 1) VIRTUAL`:                                   "'sum'",
}

func TestATableWithAForeignConstraintOrTriggerIsRefused(t *testing.T) {
	for statement, name := range meddlers {
		t.Run(name, func(t *testing.T) {
			path := grown(t)
			l := open(t, Options{Path: path})
			must(t, "Append()", l.Append(t.Context(), storetest.Grant("other", 1)))
			db := raw(t, path)
			execute(t, db, statement)
			must(t, "Close()", db.Close())

			err := l.Append(t.Context(), storetest.Grant("other", 2))
			documenttest.Says(t, "Append() by an open handle", err, store.ErrRefused, name)
			if errors.Is(err, store.ErrConflict) {
				t.Errorf("Append() = %v, want no conflict: the key is free", err)
			}
			wantErr(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "other", 2)), store.ErrNotFound)
			documenttest.Says(t, "Trim() by an open handle", documenttest.ErrorOf(l.Trim(t.Context(), "job", 9)), store.ErrRefused, name)
			wantErr(t, "Get() of what was to be trimmed", documenttest.ErrorOf(l.Get(t.Context(), "job", 1)), nil)
			for _, readOnly := range []bool{false, true} {
				_, err = Open(t.Context(), Options{Path: path, ReadOnly: readOnly})
				if readOnly {
					wantErr(t, "Open() for reading", err, nil)
				} else {
					documenttest.Says(t, "Open()", err, store.ErrRefused, name)
				}
			}
		})
	}
}

// What others add to a file without touching records is theirs.
func TestWhatTouchesNoRecordIsNoReasonToRefuseALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	db := raw(t, path)
	execute(t, db,
		`CREATE TABLE notes (text TEXT UNIQUE CHECK (text <> ''))`,
		`CREATE TRIGGER noted AFTER INSERT ON notes BEGIN SELECT 1; END`,
		`ALTER TABLE WorkerLeases ADD COLUMN "check [it] /* " ANY`,
		`ALTER TABLE WorkerLeases ADD COLUMN remark TEXT NOT NULL DEFAULT 'CHECK'`)
	must(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("job", 2)))
	wantErr(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("job", 2)), store.ErrConflict)
	must(t, "Append() by another", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 3)))
}

// An index whose collation this process doesn't know, as an application with its own leaves it.
func TestAnIndexWithAnUnknownCollationIsRefused(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("other", 1)))
	db, err := dial(path, "mode=rw")
	must(t, "dial()", err)
	db.SetMaxOpenConns(1)
	execute(t, db,
		`CREATE INDEX foreign_words ON WorkerLeases (claim)`,
		`PRAGMA writable_schema = ON`,
		`UPDATE sqlite_schema SET sql = 'CREATE INDEX foreign_words ON WorkerLeases (claim COLLATE klingon)' WHERE name = 'foreign_words'`,
		`PRAGMA schema_version = 999`)
	must(t, "Close()", db.Close())
	documenttest.Says(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("other", 2)), store.ErrRefused, "'foreign_words'")
	documenttest.Says(t, "Trim() by an open handle", documenttest.ErrorOf(l.Trim(t.Context(), "job", 9)), store.ErrRefused, "'foreign_words'")
	_, err = Open(t.Context(), Options{Path: path})
	documenttest.Says(t, "Open()", err, store.ErrRefused, "'foreign_words'")
	wantErr(t, "Get() by a handle for reading", documenttest.ErrorOf(open(t, Options{Path: path, ReadOnly: true}).Get(t.Context(), "other", 1)), nil)
}

func TestATrimAfterAHarmlessChangeOfTheTablesGoesOn(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	execute(t, raw(t, path), `CREATE TABLE notes (text)`)
	for _, want := range []int{2, 0} {
		n, err := l.Trim(t.Context(), "job", 3)
		must(t, "Trim()", err)
		documenttest.Equal(t, "records that were deleted", n, want)
	}
}

// Nothing can be inserted into a column that is computed, so the error that a ledger has then is to say why.
func TestAColumnOfALedgerThatIsComputedIsRefused(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("other", 1)))
	execute(t, raw(t, path), `ALTER TABLE WorkerLeases DROP COLUMN kind`, `ALTER TABLE WorkerLeases ADD COLUMN kind TEXT AS ('grant')`)
	const says = "column kind of WorkerLeases is TEXT GENERATED, want TEXT"
	documenttest.Says(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("other", 2)), store.ErrRefused, says)
	documenttest.Says(t, "Open()", documenttest.ErrorOf(Open(t.Context(), Options{Path: path})), store.ErrRefused, says)
}

// Tools that can't change a table in place make another, with what they know of the first. Without
// its key, two workers would store the same record. With seq as text, the tenth isn't the newest.
func TestATableThatWasRebuiltOtherwiseIsRefused(t *testing.T) {
	const key = ", PRIMARY KEY (workerType, seq)"
	for what, c := range map[string]struct{ column, kind, key, says string }{
		"no key":                   {says: `primary key of WorkerLeases "", want "workerType,seq"`},
		"a longer key":             {key: ", PRIMARY KEY (workerType, seq, claim)", says: `"workerType,seq,claim"`},
		"another key":              {key: ", PRIMARY KEY (seq, instanceId)", says: `"seq,instanceId"`},
		"another type":             {"seq", "TEXT NOT NULL", key, "column seq of WorkerLeases is TEXT NOT NULL, want INTEGER NOT NULL"},
		"no type":                  {"seq", "ANY NOT NULL", key, "column seq of WorkerLeases is ANY NOT NULL, want INTEGER NOT NULL"},
		"another type of a time":   {"windowEnd", "TEXT", key, "column windowEnd of WorkerLeases is TEXT, want INTEGER"},
		"a column that can't be 0": {"readAt", "INTEGER NOT NULL", key, "column readAt of WorkerLeases is INTEGER NOT NULL, want INTEGER"},
		"a missing column":         {"attempt", "", key, "column attempt of WorkerLeases is missing, want INTEGER"},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			one, two := open(t, Options{Path: path}), open(t, Options{Path: path})
			for _, l := range []*Ledger{one, two} {
				must(t, "Init()", l.Init(t.Context()))
			}
			for _, seq := range []int64{1, 2} {
				must(t, "Append()", one.Append(t.Context(), storetest.Grant("job", seq)))
			}
			var names, declared []string
			for _, own := range columns {
				kind := own.kind
				if own.name == c.column {
					kind = c.kind
				}
				if kind != "" {
					names, declared = append(names, fmt.Sprintf("%q", own.name)), append(declared, fmt.Sprintf("%q %s", own.name, kind))
				}
			}
			db := raw(t, path)
			db.SetMaxOpenConns(1)
			execute(t, db, "BEGIN", "UPDATE WorkerLeases SET readAt = 1", "CREATE TABLE rebuilt ("+strings.Join(declared, ", ")+c.key+") STRICT",
				"INSERT INTO rebuilt SELECT "+strings.Join(names, ", ")+" FROM WorkerLeases", "DROP TABLE WorkerLeases",
				"ALTER TABLE rebuilt RENAME TO WorkerLeases", "COMMIT")
			must(t, "Close()", db.Close())

			for _, l := range []*Ledger{one, two} {
				documenttest.Says(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("other", 1)), store.ErrRefused, c.says)
			}
			documenttest.Says(t, "Trim() by an open handle", documenttest.ErrorOf(one.Trim(t.Context(), "job", 2)), store.ErrRefused, c.says)
			documenttest.Says(t, "Open()", documenttest.ErrorOf(Open(t.Context(), Options{Path: path})), store.ErrRefused, c.says)
			documenttest.Equal(t, "rows", asked[int64](t, path, "SELECT count(*) FROM WorkerLeases"), 2)
		})
	}
}

// Store time is read from that table. What is no integer there can't be read.
func TestATableOfTimeLinesThatWasRebuiltOtherwiseIsRefused(t *testing.T) {
	const id, offset, rest = "id TEXT NOT NULL PRIMARY KEY", "wallOffset INTEGER NOT NULL", "skew INTEGER"
	for what, c := range map[string]struct{ id, offset, madeAt, says string }{
		"real":             {id, "wallOffset REAL NOT NULL", "madeAt INTEGER", "column wallOffset of Boot is REAL NOT NULL, want INTEGER NOT NULL"},
		"text":             {id, offset, "madeAt TEXT", "column madeAt of Boot is TEXT, want INTEGER"},
		"no type":          {id, "wallOffset", "madeAt INTEGER", "column wallOffset of Boot is untyped, want INTEGER NOT NULL"},
		"no key":           {"id TEXT NOT NULL", offset, "madeAt INTEGER", `primary key of Boot "", want "id"`},
		"another key":      {"id TEXT NOT NULL", offset + " PRIMARY KEY", "madeAt INTEGER", `primary key of Boot "wallOffset", want "id"`},
		"a column for all": {id, offset, "madeAt INTEGER NOT NULL DEFAULT 0", "column madeAt of Boot is INTEGER NOT NULL, want INTEGER"},
		"computed":         {id, offset, "madeAt INTEGER AS (1)", "column madeAt of Boot is INTEGER GENERATED, want INTEGER"},
		"no such table":    {says: "column id of Boot is missing, want TEXT NOT NULL"},
	} {
		t.Run(what, func(t *testing.T) {
			o := Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: bootedAt(noon, time.Hour, 0), BootID: "b"}
			l := open(t, o)
			must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
			now(t, l)
			db := raw(t, o.Path)
			db.SetMaxOpenConns(1)
			execute(t, db, "ALTER TABLE Boot RENAME TO was")
			if c.id != "" {
				execute(t, db, "CREATE TABLE Boot ("+strings.Join([]string{c.id, c.offset, c.madeAt, rest}, ", ")+")",
					"INSERT INTO Boot (id, wallOffset) SELECT id, wallOffset FROM was")
			}
			execute(t, db, "DROP TABLE was")
			must(t, "Close()", db.Close())

			documenttest.Says(t, "Append() by an open handle", l.Append(t.Context(), storetest.Grant("job", 2)), store.ErrRefused, strings.SplitAfter(c.says, "Boot")[0])
			documenttest.Says(t, "Open()", documenttest.ErrorOf(Open(t.Context(), o)), store.ErrRefused, c.says)
		})
	}
}

// So is a table with the columns of a ledger, if it isn't strict.
func TestATimeLineThatIsNoIntegerIsRefusedByName(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: bootedAt(noon, time.Hour, 0), BootID: "b"}
	l := open(t, o)
	now(t, l)
	execute(t, raw(t, o.Path), "DROP TABLE Boot", "CREATE TABLE Boot (id TEXT NOT NULL PRIMARY KEY, wallOffset INTEGER NOT NULL)", "INSERT INTO Boot VALUES ('b', 1.5)")
	const says = `column wallOffset of Boot has the value "1.5", want an integer`
	for _, readOnly := range []bool{false, true} {
		o.ReadOnly = readOnly
		documenttest.Says(t, "Now()", documenttest.ErrorOf(open(t, o).Now(t.Context())), store.ErrRefused, says)
	}
	documenttest.Says(t, "Now() by an open handle", documenttest.ErrorOf(l.Now(t.Context())), store.ErrRefused, says)
	execute(t, raw(t, o.Path), "DROP TABLE Boot")
	documenttest.Says(t, "Now() without the table", documenttest.ErrorOf(l.Now(t.Context())), store.ErrRefused, "column id of Boot is missing")
}
