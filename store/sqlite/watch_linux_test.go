package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// hints returns whether the log of a ledger was touched since the last call.
func hints(t *testing.T, path string) (hinted func() bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, "InotifyInit1()", err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_ATTRIB)
	must(t, "InotifyAddWatch()", err)
	return func() bool {
		var all bool
		for b := make([]byte, 4096); ; {
			n, err := unix.Read(fd, b)
			if errors.Is(err, unix.EAGAIN) {
				return all
			}
			must(t, "Read()", err)
			hinted, _ := told(b[:n], filepath.Base(path)+suffixes[1])
			all = all || hinted
		}
	}
}

// Whether it is stored alone or with others.
func TestOnlyWhatMayFreeALeaseGivesAHint(t *testing.T) {
	l, _ := inUse(t, Options{BusyTimeout: time.Hour})
	hinted := hints(t, l.o.Path)
	freeing := func(workerType string, kind store.Kind) store.Record {
		r := storetest.Grant(workerType, 1)
		r.Kind, r.WindowStart = kind, r.WindowEnd
		return r
	}
	grants := ofTypes(20)
	for _, c := range []struct {
		name    string
		records []store.Record
		hinted  bool
	}{
		{"a grant", []store.Record{storetest.Grant("alone", 1)}, false},
		{"a release", []store.Record{freeing("released", store.KindRelease)}, true},
		{"a release that was stored before", []store.Record{freeing("alone", store.KindRelease)}, false},
		{"a job that is done", []store.Record{freeing("done", store.KindDone)}, false},
		{"what came of a job", []store.Record{freeing("told", store.KindOutcome)}, false},
		{"grants", grants, false},
		{"grants, and a release", append(ofNewTypes(20), freeing("ended", store.KindRelease)), true},
		{"grants that are stored, and a release whose key is taken", append(grants[:0:0], freeing("ended", store.KindRelease), storetest.Grant("last", 1)), false},
	} {
		release := hold(t, l.o.Path)
		all := gathering(t, l, c.records, always(t))
		hinted() // Opening the log gives one, too, if root does so.
		release()
		outcomes(t, all, len(c.records))
		documenttest.Equal(t, c.name+" gave a hint", hinted(), c.hinted)
	}
}

// ofNewTypes are grants of types that ofTypes doesn't have.
func ofNewTypes(n int) []store.Record {
	records := ofTypes(n)
	for i := range records {
		records[i].WorkerType = "new-" + records[i].WorkerType
	}
	return records
}

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
	case <-suites.Deadline(t).Done():
		t.Error("Watch goes on in a directory that has another name")
	}
}

func TestNoWatchKeepsTheTimeOfABubbleFromGoingOn(t *testing.T) {
	l := ledgerIn(t, t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		if err := l.Watch(t.Context(), func(string) {}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Watch() = %v in a bubble, want that it is of no use", err)
		}
	})
}
