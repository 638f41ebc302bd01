package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// disk is what all tests of the package stand on; it can be made to hang.
var disk struct {
	mu         sync.Mutex
	met, freed chan struct{}     // nil unless it hangs
	looked     func(path string) // called before each look, or nil
}

func init() {
	stat = func(path string) (os.FileInfo, error) {
		disk.mu.Lock()
		met, freed, looked := disk.met, disk.freed, disk.looked
		disk.mu.Unlock()
		if looked != nil {
			looked(path)
		}
		if freed != nil {
			met <- struct{}{}
			<-freed
		}
		return os.Stat(path)
	}
}

// hang makes the disk hang until the returned function is called. It reports when
// an operation meets it.
func hang(t *testing.T) (stuck <-chan struct{}, release func()) {
	t.Helper()
	met, freed := make(chan struct{}, 100), make(chan struct{})
	set := func(m, f chan struct{}) {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.met, disk.freed = m, f
	}
	set(met, freed)
	release = sync.OnceFunc(func() { set(nil, nil); close(freed) })
	t.Cleanup(release)
	return met, release
}

// in runs act, which must end soon although the disk hangs.
func in(t *testing.T, what string, act func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- act() }()
	select {
	case err := <-done:
		return err
	case <-suites.Deadline(t).Done():
		t.Fatalf("%s doesn't return while the disk hangs", what)
		return nil
	}
}

func TestOneOperationThatHangsHoldsUpNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		path func() string
		warm bool
	}{
		"a file in use":        {path: func() string { return grown(t) }, warm: true},
		"a file not yet open":  {path: func() string { return grown(t) }},
		"a file to be created": {path: func() string { return filepath.Join(t.TempDir(), "new.db") }},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path()
			l := open(t, Options{Path: path})
			if c.warm {
				must(t, "Init()", l.Init(t.Context()))
			}
			stuck, release := hang(t)
			// The first has no deadline: it is stuck for as long as the disk is.
			first := make(chan error, 1)
			go func() { first <- l.Append(t.Context(), storetest.Grant("job", 31)) }()
			<-stuck

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			acts := documenttest.Operations(l, storetest.Grant("job", 32))
			acts["Open"] = func(ctx context.Context) error { _, err := Open(ctx, Options{Path: path}); return err }
			for what, act := range acts {
				wantErr(t, what+"() while the disk hangs", in(t, what, func() error { return act(ctx) }), context.DeadlineExceeded)
			}
			release()
			wantErr(t, "Append() on a disk that hung for a while", <-first, nil)
			if got, _, err := l.Tail(t.Context(), "job", 1); err != nil || len(got) != 1 || got[0].Seq != 31 {
				t.Errorf("Tail() when the disk is back = %v, %v, want Seq 31", got, err)
			}
			wantErr(t, "Close()", l.Close(t.Context()), nil)
		})
	}
}

func TestADiskThatHangsKeepsOneGoroutinePerHandle(t *testing.T) {
	l := open(t, Options{Path: grown(t)})
	stuck, release := hang(t)
	n := 0
	suites.Eventually(t, "twenty operations after one has run into the disk", func() bool { // They may not have begun within their time.
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // realtime: it is tried until it has
		defer cancel()
		wantErr(t, "Now() while the disk hangs", documenttest.ErrorOf(l.Now(ctx)), context.DeadlineExceeded)
		n += len(stuck)
		return n >= 20
	})
	<-stuck
	if n := len(stuck); n != 0 {
		t.Errorf("%d operations run into a disk that hangs, want 1", n+1)
	}
	release()
	wantErr(t, "Close()", l.Close(t.Context()), nil)
}

func TestCloseEndsWithItsContextAndFinishesInTheBackground(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	stuck, release := hang(t)
	first := make(chan error, 1)
	go func() { first <- l.Init(t.Context()) }()
	<-stuck

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantErr(t, "Close() while the disk hangs", in(t, "Close", func() error { return l.Close(ctx) }), context.DeadlineExceeded)
	wantErr(t, "second Close() while the disk hangs", in(t, "Close", func() error { return l.Close(t.Context()) }), nil)
	wantErr(t, "Init() after Close", in(t, "Init", func() error { return l.Init(t.Context()) }), store.ErrClosed)
	release()
	wantErr(t, "Init() under way when the ledger was closed", <-first, nil)
	// The log goes with the last handle.
	suites.Eventually(t, "the file is closed after the disk came back", func() bool {
		_, err := os.Stat(path + "-wal")
		return errors.Is(err, os.ErrNotExist)
	})
}
