package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// locks are the locks of this process on a file: those of SQLite and those of share. The
// system lists the locks of all processes page by page, and one is listed twice, or not at
// all, if others come and go meanwhile: so the list is read until two readings agree.
func locks(t *testing.T, path string) (ours, sqlites int) {
	t.Helper()
	ours, sqlites = locksOnce(t, path)
	for {
		o, s := locksOnce(t, path)
		if o == ours && s == sqlites {
			return ours, sqlites
		}
		ours, sqlites = o, s
	}
}

func locksOnce(t *testing.T, path string) (ours, sqlites int) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, "Stat()", err)
	for line := range strings.Lines(string(contentOf(t, "/proc/locks"))) {
		switch {
		case !strings.Contains(line, fmt.Sprintf(":%d ", identityOf(info).inode)):
		case strings.Contains(line, "OFDLCK"):
			ours++
		case strings.Contains(line, fmt.Sprintf(" %d ", os.Getpid())):
			sqlites++
		}
	}
	return ours, sqlites
}

// Closing a descriptor of a file drops all locks that SQLite has on it for the process.
func TestAHandleThatClosesDropsNoLockOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	want := func(when string, ours, sqlites int) {
		t.Helper()
		if o, s := locks(t, path); o != ours || s != sqlites {
			t.Errorf("locks %s: %d ours and %d of SQLite, want %d and %d", when, o, s, ours, sqlites)
		}
	}
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	want("of one handle", 1, 1)
	must(t, "Close()", open(t, Options{Path: path}).Close(t.Context()))
	want("after another looked", 1, 1)
	other := open(t, Options{Path: path})
	must(t, "Init()", other.Init(t.Context()))
	want("of two handles", 1, 1)
	must(t, "Close()", l.Close(t.Context()))
	want("of the second handle", 1, 1)
	must(t, "Append()", other.Append(t.Context(), storetest.Grant("job", 2)))
	must(t, "Close()", other.Close(t.Context()))
	want("after both were closed", 0, 0)
	if n := len(usages.of); n != 0 {
		t.Errorf("%d files are noted as open, want none", n)
	}
}

func TestHandlesOfOneProcessDoNotShareAFileByTwoPaths(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "moved.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Rename()", os.Rename(path, moved))
	_, err := Open(t.Context(), Options{Path: moved})
	wantErr(t, "Open() of the new name", err, ErrUnshared)
	must(t, "Close()", l.Close(t.Context()))
}

// claimOther locks a ledger for a log that there isn't, until the returned function is called.
func claimOther(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.Open(path)
	must(t, "Open()", err)
	must(t, "lock", ofd(f, unix.F_OFD_SETLK, unix.F_RDLCK, logsFirst+7, 1, nil))
	release = sync.OnceFunc(func() { _ = f.Close() })
	t.Cleanup(release)
	return release
}

// pauses is a clock on which no pause takes time. It adds them up, and calls done when they are as long as it says.
type pauses struct {
	clock.Clock
	sum, most time.Duration
	done      func()
}

func (p *pauses) Timer(d time.Duration) *clock.Timer {
	if p.sum += d; p.sum >= p.most {
		p.done()
	}
	return p.Clock.Timer(0)
}

func TestALedgerWhoseLogIsJustClosedIsWaitedFor(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path, Clock: &pauses{Clock: clock.NewMock(), most: otherLogTimeout / 4, done: claimOther(t, path)}})
	wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 31)), nil)
	must(t, "Close()", l.Close(t.Context()))

	claimOther(t, path)
	waited := &pauses{Clock: clock.NewMock(), most: otherLogTimeout, done: func() {}}
	_, err := Open(t.Context(), Options{Path: path, Clock: waited})
	documenttest.Says(t, "Open() of a ledger in use with another log", err, ErrUnshared, "ledger.db is in use with other -wal and -shm files", "one path in one directory")
	wantErr(t, "Open()", err, store.ErrRefused)
	if waited.sum < waited.most || waited.sum > waited.most+lastPause {
		t.Errorf("Open() was refused after %v, want it to wait for %v", waited.sum, waited.most)
	}
	reader := open(t, Options{Path: path, ReadOnly: true})
	wantErr(t, "Tail() of a reader", documenttest.ErrorOf(reader.WorkerTypes(t.Context())), nil)
}

// It could be a connection to another log.
func TestAnOperationThatWaitsUsesNoConnectionThatWasNotChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	for seq, interrupted := int64(2), 0; interrupted < 5; seq++ {
		f := l.file
		ctx, interrupt := context.WithCancel(t.Context())
		ended, appended := make(chan error, 1), make(chan error, 1)
		go func() { ended <- f.db.QueryRowContext(ctx, longQuery).Scan(new(int)) }()
		for f.db.Stats().InUse == 0 {
			runtime.Gosched()
		}
		go func() { appended <- l.Append(t.Context(), storetest.Grant("job", seq)) }()
		for f.db.Stats().WaitCount == 0 {
			time.Sleep(time.Millisecond)
		}
		interrupt()
		t.Logf("the query before it: %v", <-ended) // Well, if it was interrupted before it began.
		wantErr(t, "Append()", <-appended, nil)
		if f.one.spent() { // and not interrupted before it began
			interrupted++
		}
		if ours, _ := locks(t, path); ours != 1 || l.file.one.spent() {
			t.Fatalf("%d logs are claimed after an append, want the one that it was written to", ours)
		}
		must(t, "Close()", l.Close(t.Context()))
		l = open(t, Options{Path: path})
		must(t, "Init()", l.Init(t.Context()))
	}
}

// The last process to close a ledger removes its log, and drops its lock just after.
func TestProcessesThatCloseAndOpenAtOnceAreNotRefused(t *testing.T) {
	suites.Prove(t, "it starts many processes")
	path := grown(t)
	var children []*child
	for i := range 4 {
		children = append(children, spawn(t, "turns", path, fmt.Sprint("job-", i), 60))
	}
	startAll(t, children)
}
