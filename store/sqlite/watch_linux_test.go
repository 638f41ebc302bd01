package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ledgerIn opens a ledger with a log.
func ledgerIn(t *testing.T, dir string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), Options{Path: filepath.Join(dir, "leases.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAWatchIsTriedAgainWhenOthersLeaveRoomForIt(t *testing.T) {
	for _, err := range []error{unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.ENOMEM, unix.EACCES} {
		if got := refused(err); errors.Is(got, errors.ErrUnsupported) || !errors.Is(got, err) {
			t.Errorf("%v is taken for %v, want an error after which it is tried again", err, got)
		}
	}
	if got := refused(unix.ENOSYS); !errors.Is(got, errors.ErrUnsupported) {
		t.Errorf("%v is taken for %v, want that it is of no use", unix.ENOSYS, got)
	}
}

func TestAWatchEndsWhenItsDirectoryIsRenamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := ledgerIn(t, dir)
	hinted, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- l.Watch(t.Context(), func(string) {
			select {
			case hinted <- struct{}{}:
			default:
			}
		})
	}()
	for began := false; !began; { // The watch is under way when a hint comes.
		hint(files{target: l.o.Path})
		select {
		case <-hinted:
			began = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := os.Rename(dir, dir+".after"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Watch() = %v, want that the directory is gone", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Watch goes on in a directory that has another name")
	}
}
