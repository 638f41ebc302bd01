package sqlite

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestABackupUnderLoadIsAWholeLedger(t *testing.T) {
	path := grown(t)
	l, worker := open(t, Options{Path: path}), open(t, Options{Path: path})
	must(t, "Append()", worker.Append(t.Context(), storetest.Grant("load", 1)))
	ctx, stop := context.WithCancel(t.Context())
	var newest atomic.Int64
	worked := make(chan error)
	go func() {
		for seq := int64(2); ctx.Err() == nil; seq++ {
			if err := worker.Append(t.Context(), storetest.Grant("load", seq)); err != nil {
				worked <- err
				return
			}
			newest.Store(seq)
		}
		worked <- nil
	}()
	for i, from := range []*Ledger{l, open(t, Options{Path: path, ReadOnly: true})} {
		before := newest.Load()
		to := filepath.Join(t.TempDir(), "copy.db")
		must(t, "Backup()", from.Backup(t.Context(), to))
		for _, readOnly := range []bool{true, false} {
			copied := open(t, Options{Path: to, ReadOnly: readOnly})
			got, _, err := copied.Tail(t.Context(), "load", 1<<20)
			if err != nil || int64(len(got)) < before || int64(len(got)) != got[0].Seq || got[0] != storetest.Grant("load", got[0].Seq) {
				t.Errorf("backup %d has %d records (%v), want all up to %d at least", i, len(got), err, before)
			}
			if !readOnly {
				must(t, "Append() to the copy", copied.Append(t.Context(), storetest.Grant("load", int64(len(got)+1))))
			}
			must(t, "Close()", copied.Close(t.Context()))
		}
		wantOnly(t, filepath.Dir(to), "copy.db")
	}
	stop()
	must(t, "the worker", <-worked)
}

// wantOnly demands which files a directory has.
func wantOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, "ReadDir()", err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

func TestABackupOverwritesNothingAndLeavesNothingBehind(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	dir := t.TempDir()
	to := filepath.Join(dir, "copy.db")
	must(t, "WriteFile()", os.WriteFile(to, []byte("precious"), 0o600))
	documenttest.Says(t, "Backup()", l.Backup(t.Context(), to), fs.ErrExist, to, "choose another name")
	documenttest.Equal(t, "the file", string(contentOf(t, to)), "precious")
	wantOnly(t, dir, "copy.db")
	must(t, "Remove()", os.Remove(to))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Backup() in a context that has ended", l.Backup(ctx, to), context.Canceled)
	wantErr(t, "Backup() into a directory that is missing", l.Backup(t.Context(), filepath.Join(dir, "no", "copy.db")), fs.ErrNotExist)
	wantErr(t, "Backup() over itself", l.Backup(t.Context(), path), fs.ErrExist)
	wantOnly(t, dir)

	damaged := grown(t)
	b := contentOf(t, damaged)
	for i := 4096; i < len(b); i++ {
		b[i] = 0xa5
	}
	content(b)(t, damaged)
	wantErr(t, "Backup() of a damaged file", open(t, Options{Path: damaged}).Backup(t.Context(), to), store.ErrRefused)
	none := filepath.Join(t.TempDir(), "none.db")
	wantErr(t, "Backup() of no ledger", open(t, Options{Path: none}).Backup(t.Context(), to), store.ErrMissing)
	wantOnly(t, filepath.Dir(none))
	wantOnly(t, dir)
}

// What an earlier file of that name has left would be written over the copy, or rolled back in it.
func TestABackupIsRefusedWhereSQLiteWouldTakeAnotherFileForPartOfIt(t *testing.T) {
	dir := t.TempDir()
	l, old := open(t, Options{Path: filepath.Join(dir, "src.db")}), open(t, Options{Path: filepath.Join(dir, "old.db")})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("wanted", 1)))
	must(t, "Append()", old.Append(t.Context(), storetest.Grant("stale", 1)))
	log := contentOf(t, filepath.Join(dir, "old.db-wal")) // as after kill -9
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		to := filepath.Join(t.TempDir(), "copy.db")
		must(t, "WriteFile()", os.WriteFile(to+suffix, log, 0o600))
		documenttest.Says(t, "Backup() beside a file", l.Backup(t.Context(), to), fs.ErrExist, to+suffix, "remove it, or choose another name")
		wantOnly(t, filepath.Dir(to), "copy.db"+suffix)
		for _, name := range []string{"src.db" + suffix + "x" + suffix, "other" + suffix, "OTHER" + strings.ToUpper(suffix)} {
			documenttest.Says(t, "Backup() to the name of a file beside a ledger", l.Backup(t.Context(), filepath.Join(dir, name)), fs.ErrInvalid, name, "choose another name")
		}
	}
	must(t, "Backup()", l.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db-wal.db")))
}

// A crash right after a backup must not take its name away.
func TestABackupHasItsNameOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "copy.db")
	l := open(t, Options{Path: grown(t)})
	synced := ""
	syncs := func(err error) {
		syncDir = func(path string) error {
			if _, e := os.Stat(to); e != nil {
				t.Errorf("the directory is synced when the copy has no name: %v", e)
			}
			synced = path
			return err
		}
	}
	old := syncDir
	t.Cleanup(func() { syncDir = old })
	syncs(&fs.PathError{Op: "sync", Path: dir, Err: syscall.EIO})
	documenttest.Says(t, "Backup() into a directory that can't be synced", l.Backup(t.Context(), to), syscall.EIO, to)
	wantOnly(t, dir)
	syncs(nil)
	must(t, "Backup()", l.Backup(t.Context(), to))
	documenttest.Equal(t, "the directory that was synced", synced, dir)
	syncDir = old
	must(t, "syncDir()", syncDir(dir))
	must(t, "syncDir() without the right to read", func() error {
		must(t, "Chmod()", os.Chmod(dir, 0o300))
		defer func() { _ = os.Chmod(dir, 0o700) }()
		return syncDir(dir)
	}())
}

// endsLate is a context that ends when the copy in a directory has got the rights of its ledger.
type endsLate struct {
	context.Context
	dir string
}

func (c endsLate) Err() error {
	parts, _ := filepath.Glob(filepath.Join(c.dir, "*.part*"))
	for _, part := range parts {
		if info, err := os.Stat(part); err == nil && info.Mode().Perm() == 0o640 {
			return context.DeadlineExceeded
		}
	}
	return nil
}

// Where the caller is told before the disk has answered, it can't be known whether there is a copy.
func TestACopyThatIsThereAfterItsContextHasEndedIsWhole(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Path: grown(t)})
	must(t, "Chmod()", os.Chmod(l.o.Path, 0o640))
	wantErr(t, "backup() when the context has ended meanwhile", l.backup(endsLate{t.Context(), dir}, filepath.Join(dir, "copy.db")), context.DeadlineExceeded)
	wantOnly(t, dir)

	old, syncing, answer := syncDir, make(chan struct{}), make(chan struct{})
	syncDir = func(dir string) error {
		close(syncing)
		<-answer
		return old(dir)
	}
	t.Cleanup(func() { syncDir = old })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-syncing
		cancel()
	}()
	to := filepath.Join(dir, "copy.db")
	wantErr(t, "Backup() on a disk that is slow", l.Backup(ctx, to), context.Canceled)
	close(answer)
	must(t, "Close()", l.Close(t.Context())) // It waits.
	wantOnly(t, dir, "copy.db")
	must(t, "check() of the copy", check(t.Context(), to))
}
