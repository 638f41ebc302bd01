package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// beforeLook does something before the nth look at a path, once.
func beforeLook(t *testing.T, n int, path string, act func()) {
	t.Helper()
	disk.mu.Lock()
	defer disk.mu.Unlock()
	looks := 0
	disk.looked = func(at string) {
		if at != path {
			return
		}
		if looks++; looks == n {
			act()
		}
	}
	t.Cleanup(func() {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.looked = nil
	})
}

func TestWhatIsFoundAfterAnAppendLeavesItsOutcomeUnknown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no file that is in use")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	beforeLook(t, 2, path+"-wal", func() { must(t, "Remove()", os.Remove(path+"-wal")) })
	err := l.Append(t.Context(), storetest.Grant("job", 2))
	documenttest.Says(t, "Append() whose log goes meanwhile", err, ErrUnshared, "ledger.db-wal was removed")
	for _, known := range []error{store.ErrConflict, store.ErrInvalid, store.ErrRefused, store.ErrDenied, store.ErrMissing} {
		if errors.Is(err, known) {
			t.Errorf("Append() = %v, which is %v: want an unknown outcome", err, known)
		}
	}
	err = l.Append(t.Context(), storetest.Grant("job", 3))
	documenttest.Says(t, "later Append()", err, ErrUnshared, "ledger.db-wal was removed")
	wantErr(t, "later Append()", err, store.ErrRefused)

	// The handle let go of the file, so what was in the log that is gone isn't lost.
	got, _, err := open(t, Options{Path: path}).Tail(t.Context(), "job", 1)
	if err != nil || len(got) != 1 || got[0].Seq != 2 {
		t.Errorf("Tail() by a new handle = %v, %v, want the last record that was written", got, err)
	}
}

// While the file has another link, a handle does nothing. A backup may make one, and remove it. Where
// nothing shows whether somebody has used it meanwhile, the handle is refused for good.
func TestAHandleIsRefusedWhileTheFileHasAnotherLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links aren't counted on Windows")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Link()", os.Link(path, path+".link"))
	documenttest.Says(t, "Append() with a link", l.Append(t.Context(), storetest.Grant("job", 2)), ErrUnshared, "2 hard links")
	must(t, "Remove()", os.Remove(path+".link"))
	if seesOtherLogs {
		wantErr(t, "Append() when the link is gone", l.Append(t.Context(), storetest.Grant("job", 2)), nil)
		wantErr(t, "Append() by a new handle", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 3)), nil)
		return
	}
	for what, act := range documenttest.Operations(l, storetest.Grant("job", 2)) {
		err := act(t.Context())
		documenttest.Says(t, what+"() when the link is gone", err, ErrUnshared, "2 hard links")
		wantErr(t, what+"() when the link is gone", err, store.ErrRefused)
	}
	wantErr(t, "Append() by a new handle", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 2)), nil)
}

// longQuery is a query that takes seconds, unless it is interrupted. The driver interrupts once, and what it
// interrupts before it began goes on.
const longQuery = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 5000000) SELECT count(*) FROM n"

// interrupt has a reading of a handle be interrupted, which closes its connection.
func interrupt(t *testing.T, l *Ledger) {
	t.Helper()
	f := l.file
	suites.Eventually(t, "a long reading is interrupted", func() bool { // It may not have begun within its time.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // realtime: it is tried until it is interrupted
		defer cancel()
		return f.db.QueryRowContext(ctx, longQuery).Scan(new(int)) != nil && f.one.spent()
	})
}

// database/sql closes a connection that was interrupted. If it was the last one, SQLite
// removes the log, and others begin a new one.
func TestAnInterruptedHandleGoesOnWithTheLogThatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	for seq := range 10 {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", int64(2*seq+1))))
		interrupt(t, l)
		other := hire(t, path)
		wantStored(t, "Append() by another process", other.appends(t, 2*seq+2))
		if seq%2 == 0 {
			other.end()
		}
	}
	wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 21)), nil)
}
