package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// grown is the path of a ledger with records, at rest.
func grown(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	for seq := int64(1); seq <= 30; seq++ {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", seq)))
	}
	must(t, "Close()", l.Close(t.Context()))
	return path
}

// listing is the content of a directory.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, "ReadDir()", err)
	for _, e := range entries {
		all[e.Name()] = string(contentOf(t, filepath.Join(dir, e.Name())))
	}
	return all
}

func sameListing(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s left a file %s behind", what, name)
		}
	}
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s changed %s: %d bytes, were %d", what, name, len(got[name]), len(content))
		}
	}
}

// foreign makes a database that isn't a ledger.
func foreign(statements ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		db := raw(t, path)
		execute(t, db, statements...)
		must(t, "Close()", db.Close())
	}
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, "ReadFile()", err)
	return b
}

func content(b []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		must(t, "WriteFile()", os.WriteFile(path, b, 0o600))
	}
}

// copied is a ledger with records.
func copied(t *testing.T, path string) {
	t.Helper()
	spoilt(func(b []byte) []byte { return b })(t, path)
}

// spoilt makes a ledger and changes its bytes.
func spoilt(change func(b []byte) []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		content(change(contentOf(t, grown(t))))(t, path)
	}
}

// altered makes a ledger and changes its schema.
func altered(statements ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		copied(t, path)
		foreign(statements...)(t, path)
	}
}

func TestAFileThatIsNoLedgerIsRefusedAndLeftUntouched(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		says    string
	}{
		"a short text":                  {content([]byte("hi\n")), "not a SQLite database"},
		"a long text":                   {content(bytes.Repeat([]byte("Dear diary, "), 1<<10)), "not a SQLite database"},
		"zeros":                         {content(make([]byte, 8192)), "not a SQLite database"},
		"a header and nothing else":     {spoilt(func(b []byte) []byte { return b[:100] }), ""},
		"a damaged header":              {spoilt(func(b []byte) []byte { copy(b, "SQLite format 4"); return b }), "not a SQLite database"},
		"a damaged schema":              {spoilt(func(b []byte) []byte { copy(b[100:], bytes.Repeat([]byte{0xff}, 3000)); return b }), "corrupt"},
		"another application's":         {foreign("CREATE TABLE users (name)", "INSERT INTO users VALUES ('root')"), "another application"},
		"another application's, in WAL": {foreign("PRAGMA journal_mode = WAL", "CREATE TABLE users (name)"), "another application"},
		"another application's id":      {foreign("PRAGMA application_id = 252006673"), "application_id 0xf055111"},
		"a table of our name":           {foreign("CREATE TABLE WorkerLeases (seq)"), "another application"},
		"a newer version's":             {altered("PRAGMA user_version = 3"), "newer version"},
		"a ledger without primary key":  {altered("DROP TABLE WorkerLeases", "CREATE TABLE WorkerLeases (workerType, seq)"), "primary key"},
		"a ledger without its table":    {altered("DROP TABLE WorkerLeases"), "primary key"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "some.db")
			c.prepare(t, path)
			if left := listing(t, filepath.Dir(path)); len(left) != 1 {
				t.Fatalf("the test itself left %d files", len(left))
			}
			wantRefused(t, path, c.says)
		})
	}
}

// wantRefused demands that a file isn't opened, for a reason that is said, and that
// nothing is changed.
func wantRefused(t *testing.T, path, says string) {
	t.Helper()
	before := listing(t, filepath.Dir(path))
	for _, readOnly := range []bool{false, true} {
		l, err := Open(t.Context(), Options{Path: path, ReadOnly: readOnly})
		if err == nil {
			_ = l.Close(t.Context())
		}
		documenttest.Says(t, fmt.Sprintf("Open(ReadOnly: %v)", readOnly), err, store.ErrRefused, says, path)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("Open() = %q, want one line", err)
		}
	}
	sameListing(t, "Open()", listing(t, filepath.Dir(path)), before)
}

func TestADatabaseInUseByAnotherApplicationIsLeftUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.db")
	foreign("PRAGMA journal_mode = WAL", "CREATE TABLE users (name)", "PRAGMA wal_checkpoint")(t, path)
	db := raw(t, path)
	execute(t, db, "INSERT INTO users VALUES ('root')")
	before, err := os.Stat(path + "-wal")
	if err != nil || before.Size() == 0 {
		t.Fatalf("log of the other application: %v, %v", before, err)
	}
	wantErr(t, "Open()", documenttest.ErrorOf(Open(t.Context(), Options{Path: path})), store.ErrRefused)
	if after, err := os.Stat(path + "-wal"); err != nil || after.Size() != before.Size() {
		t.Errorf("log of the other application after Open() = %v, %v, want %d bytes", after, err, before.Size())
	}
	execute(t, db, "INSERT INTO users VALUES ('toor')")
}

func TestAMissingFileIsNotCreatedByLooking(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	wantErr(t, "Open(ReadOnly) of a missing file", documenttest.ErrorOf(Open(t.Context(), Options{Path: path, ReadOnly: true})), store.ErrMissing)
	l := open(t, Options{Path: path})
	sameListing(t, "Open()", listing(t, dir), nil)
	wantErr(t, "Close()", l.Close(t.Context()), nil)
	wantErr(t, "Init() after Close", l.Init(context.WithoutCancel(t.Context())), store.ErrClosed)
	sameListing(t, "Close()", listing(t, dir), nil)

	content(nil)(t, path)
	wantErr(t, "Open(ReadOnly) of an empty file", documenttest.ErrorOf(Open(t.Context(), Options{Path: path, ReadOnly: true})), store.ErrMissing)
	sameListing(t, "Open(ReadOnly)", listing(t, dir), map[string]string{"ledger.db": ""})
}

func TestAWorkerCanStartOnAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	content(nil)(t, path)
	l := open(t, Options{Path: path})
	if got, stamp, err := l.Tail(t.Context(), "job", 1); err != nil || len(got) != 0 || stamp.IsZero() {
		t.Errorf("Tail() = %v, %v, %v, want no record, a stamp and no error", got, stamp, err)
	}
	wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)), nil)
}

func TestAReadOnlyLedgerReadsAndChangesNothing(t *testing.T) {
	path := grown(t)
	before := listing(t, filepath.Dir(path))
	l := open(t, Options{Path: path, ReadOnly: true})
	got, stamp, err := l.Tail(t.Context(), "job", 2)
	if err != nil || len(got) != 2 || got[0] != storetest.Grant("job", 30) || stamp.IsZero() {
		t.Errorf("Tail() = %v, %v, %v, want the two newest and a stamp", got, stamp, err)
	}
	for what, err := range map[string]error{
		"Init":   l.Init(t.Context()),
		"Append": l.Append(t.Context(), storetest.Grant("job", 31)),
		"Trim":   func() error { _, err := l.Trim(t.Context(), "job", 30); return err }(),
	} {
		if !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s() of a read-only ledger = %v, want ErrDenied", what, err)
		}
	}
	wantErr(t, "Close()", l.Close(t.Context()), nil)
	sameListing(t, "a read-only ledger", listing(t, filepath.Dir(path)), before)
}

func TestBadPathsAreRefusedWithAReason(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(filepath.Join("no", "ledger.db"), link); err != nil {
		t.Logf("no symbolic links: %v", err)
		link = filepath.Join(dir, "no", "link.db")
	}
	for path, want := range map[string]string{
		"":                                    "path is empty",
		":memory:":                            "store/memory",
		"file::memory:?cache=shared":          "store/memory",
		"file:ledger.db":                      "not a URI",
		"a\x00b":                              "NUL",
		dir:                                   "not a regular file: name one in that directory",
		filepath.Join(dir, "no", "ledger.db"): "directory of the file",
		link:                                  "directory of the file",
	} {
		documenttest.Says(t, fmt.Sprintf("Open(%q)", path), documenttest.ErrorOf(Open(t.Context(), Options{Path: path})), nil, want)
	}
	wantErr(t, "Open() in a missing directory", documenttest.ErrorOf(Open(t.Context(), Options{Path: filepath.Join(dir, "no", "ledger.db")})), fs.ErrNotExist)
	_, err := Open(t.Context(), Options{BusyTimeout: -1})
	documenttest.Says(t, "Open() with two bad options", err, nil, "path is empty", "busy timeout -1ns")
}

func TestAnyFileNameWorks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such file names")
	}
	for _, name := range []string{"a?b.db", "a#b.db", "a b.db", "100%.db", "a%20b.db", "a&mode=memory.db", "?mode=memory", "ünï 工.db", "a'b\".db", `a\b.db`, "+.db", "a;b.db"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			l := open(t, Options{Path: path})
			must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file is not at its path: %v: %v", err, listing(t, dir))
			}
			if got, _, err := open(t, Options{Path: path, ReadOnly: true}).Tail(t.Context(), "job", 1); err != nil || len(got) != 1 {
				t.Errorf("Tail() by another handle = %v, %v, want 1 record", got, err)
			}
		})
	}
}

func TestARelativePathStaysWhenTheProcessMoves(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l := open(t, Options{Path: "ledger.db"})
	t.Chdir(t.TempDir())
	wantErr(t, "Init()", l.Init(t.Context()), nil)
	wantErr(t, "Stat()", documenttest.ErrorOf(os.Stat(filepath.Join(dir, "ledger.db"))), nil)
}

func TestHandlesThatCloseLeaveOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var handles []*Ledger
	for range 10 {
		handles = append(handles, open(t, Options{Path: path}))
	}
	for i, l := range handles {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", int64(i+1))))
	}
	for _, l := range handles {
		wantErr(t, "Close()", l.Close(t.Context()), nil)
	}
	if got := listing(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("after all handles were closed there are %d files, want 1", len(got))
	}
}

func TestAFileThatWasRemovedOrReplacedIsNoLongerUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no file that is in use")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("old", 1)))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, "Remove()", os.Remove(path+suffix))
	}
	for what, err := range map[string]error{
		"Append": l.Append(t.Context(), storetest.Grant("old", 2)),
		"Init":   l.Init(t.Context()),
	} {
		if !errors.Is(err, store.ErrMissing) {
			t.Errorf("%s() after the file was removed = %v, want ErrMissing", what, err)
		}
	}
	must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("new", 1)))
	// It may have stored what the new file doesn't have, so it doesn't go on with that.
	for what, act := range documenttest.Operations(l, storetest.Grant("new", 2)) {
		documenttest.Says(t, what+"() when there is a file of that name", act(t.Context()), ErrUnshared, "ledger.db was removed: stop all workers")
	}
	if got, err := open(t, Options{Path: path}).WorkerTypes(t.Context()); err != nil || len(got) != 1 || got[0] != "new" {
		t.Errorf("WorkerTypes() = %v, %v, want those of the file of that name", got, err)
	}
}
