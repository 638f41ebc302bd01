package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestAHealthyFileHasNoFaults(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) (examine func(context.Context) ([]store.Finding, error), path string){
		"at rest": func(t *testing.T) (func(context.Context) ([]store.Finding, error), string) {
			path := grown(t)
			return func(ctx context.Context) ([]store.Finding, error) { return Examine(ctx, Options{Path: path}) }, path
		},
		"in use": func(t *testing.T) (func(context.Context) ([]store.Finding, error), string) {
			path := grown(t)
			must(t, "Init()", open(t, Options{Path: path}).Init(t.Context()))
			return func(ctx context.Context) ([]store.Finding, error) { return Examine(ctx, Options{Path: path}) }, path
		},
		"by the worker's own handle": func(t *testing.T) (func(context.Context) ([]store.Finding, error), string) {
			path := grown(t)
			l := open(t, Options{Path: path})
			_, err := l.Now(t.Context())
			must(t, "Now()", err)
			return l.Examine, path
		},
	} {
		t.Run(name, func(t *testing.T) {
			examine, path := prepare(t)
			stored := func() string {
				all := listing(t, filepath.Dir(path))
				maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasSuffix(name, "-shm") }) // Locks are noted there.
				return fmt.Sprint(all)
			}
			before := stored()
			found, err := examine(t.Context())
			must(t, "Examine()", err)
			documenttest.FindsNoMore(t, found)
			if len(found) != 10 {
				t.Errorf("Examine() found\n%swant 10 checks", documenttest.Lines(found))
			}
			if stored() != before {
				t.Error("Examine() changed the files, want them only looked at")
			}
		})
	}
}

func TestAFaultOfAFileIsFoundAndHidesNoOther(t *testing.T) {
	change := func(statements ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { t.Helper(); execute(t, raw(t, path), statements...) }
	}
	for name, c := range map[string]struct {
		plant func(t *testing.T, path string)
		check string
		level store.Level
		says  string
		also  []string // checks that follow from it
	}{
		"a trigger":             {plant: change(`CREATE TRIGGER drops BEFORE INSERT ON WorkerLeases BEGIN SELECT RAISE(IGNORE); END`), check: store.CheckConstraints, level: store.LevelFail, says: "the trigger 'drops' isn't a ledger's, and may keep records out or change them → stop all workers, remove it"},
		"an extra unique index": {plant: change(`CREATE UNIQUE INDEX once ON WorkerLeases (claim)`), check: store.CheckConstraints, level: store.LevelFail, says: "the unique index 'once'"},
		"a table that isn't STRICT": {plant: change(
			`ALTER TABLE WorkerLeases RENAME TO old`,
			`CREATE TABLE WorkerLeases (workerType TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT, PRIMARY KEY (workerType, seq)) WITHOUT ROWID`,
		), check: store.CheckConstraints, level: store.LevelFail, says: "table WorkerLeases isn't STRICT → stop all workers, restore a backup"},
		"another journal mode": {plant: change(`PRAGMA journal_mode = DELETE`), check: CheckJournal, level: store.LevelWarn, says: "the journal mode is delete, not WAL"},
		"a newer schema":       {plant: change(`PRAGMA user_version = 99`), check: store.CheckLedger, level: store.LevelFail, says: "written by a newer version (schema 99, this one knows 2) → upgrade this program", also: []string{CheckJournal, store.CheckConstraints, store.CheckServerClocks}},
		"no file":              {plant: func(t *testing.T, path string) { t.Helper(); must(t, "Remove()", os.Remove(path)) }, check: store.CheckLedger, level: store.LevelFail, says: "the file is missing or empty → leasectl init", also: []string{CheckJournal, store.CheckConstraints, store.CheckServerClocks}},
		"no database":          {plant: content([]byte(strings.Repeat("no database", 1000))), check: store.CheckLedger, level: store.LevelFail, says: "not a SQLite database → choose another file", also: []string{CheckJournal, store.CheckConstraints, store.CheckServerClocks}},
		"a second name":        {plant: func(t *testing.T, path string) { t.Helper(); must(t, "Link()", os.Link(path, path+"2")) }, check: CheckFileSystem, level: store.LevelFail, says: "has 2 hard links, and each would have its own log → stop all workers", also: []string{CheckJournal, store.CheckConstraints, store.CheckServerClocks}},
	} {
		t.Run(name, func(t *testing.T) {
			path := grown(t)
			c.plant(t, path)
			found, err := Examine(t.Context(), Options{Path: path})
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check)...)
			if len(found) != 10 {
				t.Errorf("Examine() found\n%swant 10 checks", documenttest.Lines(found))
			}
		})
	}
}

// Workers can't lead without the time, so that it is no mere warning.
func TestATimeThatCantBeReadFails(t *testing.T) {
	path := grown(t)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, "OpenFile()", err)
	_, err = f.WriteAt([]byte(strings.Repeat("X", 24)), 2*4096) // the page of the time
	must(t, "WriteAt()", errors.Join(err, f.Close()))
	found, err := Examine(t.Context(), Options{Path: path})
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelFail, "the file is corrupt → stop all its workers")
}

func TestAnExaminationSaysWhichPlaceIsWrong(t *testing.T) {
	file := grown(t)
	dir := filepath.Dir(file)
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "ledger.db"):   "create the directory " + filepath.Join(dir, "no") + " first",
		filepath.Join(file, "ledger.db"):        "name a file in a directory: " + file + " is none",
		filepath.Join(file, "sub", "ledger.db"): "name a file in a directory: " + file + " is none",
	} {
		if runtime.GOOS == "windows" && strings.HasPrefix(path, file) {
			continue // It says that such a path isn't found.
		}
		found, err := Examine(t.Context(), Options{Path: path})
		must(t, "Examine()", err)
		if f := found[0]; f.Check != store.CheckConnection || f.Level != store.LevelFail || store.Remedy(f.Err) != want {
			t.Errorf("Examine(%q) found %+v, and to try %q, want %q", path, f, store.Remedy(f.Err), want)
		}
		_, err = Open(t.Context(), Options{Path: path})
		if got := store.Remedy(err); got != want {
			t.Errorf("Open(%q) = %v, and to try %q, want %q", path, err, got, want)
		}
	}
}

func TestAWrongTimeOfALedgerIsFound(t *testing.T) {
	l, _ := wrong(t, noon, 90*time.Second)
	found, err := l.Examine(t.Context())
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelWarn, "is 1m30s behind store time")
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelWarn, "→ if the clock is right now, stop all workers and re-anchor the ledger (leasectl reanchor)")
	documenttest.FindsNoMore(t, found, store.CheckServerClocks)
}

func TestAnExaminationOfAFileOnADiskThatHangsEndsInTime(t *testing.T) {
	path := grown(t)
	hang(t)
	const timeout = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	began := time.Now() // realtime: make prove judges it
	found, err := Examine(ctx, Options{Path: path})
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckConnection, store.LevelFail, "no answer in time")
	documenttest.Equal(t, "checks", len(found), 10)
	if took := time.Since(began); took > timeout+suites.Limit(10*time.Second, 5*time.Minute) { // realtime: in the quick run, of what hangs
		t.Errorf("Examine() took %v, want %v", took, timeout)
	}
}

func TestAClosedLedgerIsNotExamined(t *testing.T) {
	l := open(t, Options{Path: grown(t)})
	must(t, "Close()", l.Close(t.Context()))
	_, err := l.Examine(t.Context())
	wantErr(t, "Examine()", err, store.ErrClosed)
}
