package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// interrupted makes the change to a copy of the database at base, or in a new
// database if base is empty, and returns the files as a crash leaves them: pages
// are written and the journal says how to undo that. A change is caught half way,
// a creation at its end, when only the journal is still to be deleted (it says
// all from the beginning: that there was nothing).
func interrupted(t *testing.T, base string, change ...string) (file, journal []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "victim.db")
	if base != "" {
		content(contentOf(t, base))(t, path)
	}
	conn, err := raw(t, path).Conn(t.Context())
	must(t, "Conn()", err)
	defer func() { _ = conn.Close() }()
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("PRAGMA journal_mode = DELETE")
	exec("PRAGMA cache_size = 1")
	exec("BEGIN IMMEDIATE")
	for _, statement := range change {
		exec(statement)
	}
	// More than the cache holds, so that the journal is synced and pages are
	// written before the commit.
	exec("CREATE TABLE spilled (b)")
	exec("INSERT INTO spilled WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT zeroblob(3000) FROM n")
	exec("DROP TABLE spilled")
	if journal, err = os.ReadFile(path + "-journal"); err != nil || len(journal) < 512 || journal[0] == 0 {
		t.Fatalf("journal of %d bytes, %v, want a hot one", len(journal), err)
	}
	if base == "" {
		exec("COMMIT")
	}
	if file, err = os.ReadFile(path); err != nil || len(file) < 3*4096 {
		t.Fatalf("file of %d bytes, %v, want what was written", len(file), err)
	}
	if base != "" {
		exec("ROLLBACK")
	}
	return file, journal
}

// crashed puts the files where a ledger is looked for.
func crashed(t *testing.T, file, journal []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ledger.db")
	content(file)(t, path)
	content(journal)(t, path+"-journal")
	return path
}

func TestACreationThatACrashInterruptedIsDoneAgain(t *testing.T) {
	file, journal := interrupted(t, "", creation...)
	cold := append([]byte{}, journal...)
	clear(cold[:12]) // as it is before it is synced
	for name, c := range map[string]struct{ file, journal []byte }{
		"nothing was written":          {nil, journal},
		"the journal wasn't synced":    {nil, cold},
		"the header was written":       {file[:512], journal},
		"one page was written":         {file[:4096], journal},
		"a page and a half":            {file[:6144], journal},
		"all but the last page":        {file[:len(file)-4096], journal},
		"all pages were written":       {file, journal},
		"the other pages came as zero": {append(file[:4096:4096], make([]byte, len(file)-4096)...), journal},
	} {
		t.Run(name, func(t *testing.T) {
			path := crashed(t, c.file, c.journal)
			before := listing(t, filepath.Dir(path))
			_, err := Open(t.Context(), Options{Path: path, ReadOnly: true})
			if !errors.Is(err, store.ErrMissing) || len(c.file) > 0 && !strings.Contains(err.Error(), "can't undo it: init the ledger") {
				t.Errorf("Open(ReadOnly) = %v, want ErrMissing and what to do", err)
			}
			sameListing(t, "Open(ReadOnly)", listing(t, filepath.Dir(path)), before)

			l := open(t, Options{Path: path})
			must(t, "Init()", l.Init(t.Context()))
			wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)), nil)
			if got, _, err := open(t, Options{Path: path, ReadOnly: true}).Tail(t.Context(), "job", 9); err != nil || len(got) != 1 {
				t.Errorf("Tail() by another handle = %v, %v, want 1 record", got, err)
			}
		})
	}
}

func TestAChangeOfALedgerThatACrashInterruptedIsUndone(t *testing.T) {
	// Such as VACUUM or DELETE by an administrator who left WAL mode for it.
	file, journal := interrupted(t, grown(t), "DELETE FROM WorkerLeases WHERE seq > 10")
	path := crashed(t, file, journal)
	documenttest.Says(t, "Open(ReadOnly)", documenttest.ErrorOf(Open(t.Context(), Options{Path: path, ReadOnly: true})), store.ErrMissing, "can't undo it")
	l := open(t, Options{Path: path})
	if got, _, err := l.Tail(t.Context(), "job", 99); err != nil || len(got) != 30 {
		t.Errorf("Tail() = %d records, %v, want all 30", len(got), err)
	}
	wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 31)), nil)
}

func TestAnInterruptedChangeOfSomethingElseIsLeftUntouched(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.db")
	foreign("PRAGMA application_id = 252006673", "CREATE TABLE users (name)", "INSERT INTO users VALUES ('root')")(t, users)
	created, creating := interrupted(t, "", "CREATE TABLE users (name)")
	marked, marking := interrupted(t, "", "PRAGMA application_id = 252006673", "CREATE TABLE users (name)")
	changed, changing := interrupted(t, users, "DELETE FROM users")
	for name, c := range map[string]struct {
		file, journal []byte
		says          string
	}{
		"a creation":                  {created, creating, "another application (application_id 0x0)"},
		"a creation, half written":    {created[:4096], creating, "another application (application_id 0x0)"},
		"a creation by a marked one":  {marked, marking, "application_id 0xf055111"},
		"a change":                    {changed, changing, "application_id 0xf055111"},
		"a journal beside a text":     {[]byte(strings.Repeat("Dear diary, ", 1000)), creating, "remove both"},
		"a journal beside zeros":      {make([]byte, 8192), creating, "remove both"},
		"a journal beside half a one": {created[:50], creating, "interrupted change"},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefused(t, crashed(t, c.file, c.journal), c.says)
		})
	}
}

func TestAProcessKilledWhileItCreatesLeavesWhatCanBeUsed(t *testing.T) {
	suites.Prove(t, "it kills processes")
	rounds, hot := 40, 0
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		path := filepath.Join(t.TempDir(), "ledger.db")
		c := spawn(t, "create", path, "job", 0)
		c.begin(t)
		// The pages are there, the journal is most likely not deleted yet.
		for t.Context().Err() == nil {
			if info, err := os.Stat(path); err == nil && info.Size() > 0 {
				break
			}
		}
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		if _, err := os.Stat(path + "-journal"); err == nil {
			hot++
		}
		l := open(t, Options{Path: path})
		wantErr(t, "Append() after a kill", l.Append(t.Context(), storetest.Grant("other", 1)), nil)
	}
	t.Logf("%d of %d were killed before the journal was deleted", hot, rounds)
}
