package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Each sql.DB has a goroutine until it is closed.
func TestAnOpenThatFailsLeavesNothingBehind(t *testing.T) {
	suites.RealTime(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := runtime.NumGoroutine()
	for range 100 {
		if f, err := openFile(ended, path, false); err == nil {
			_ = f.close()
			t.Fatal("openFile with a context that has ended succeeded")
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after 100 opens that failed, %d before", runtime.NumGoroutine(), before)
}

// A handle keeps a goroutine for its next operation, until Close.
func TestAClosedHandleLeavesNoGoroutine(t *testing.T) {
	suites.RealTime(t)
	path := grown(t)
	text := filepath.Join(t.TempDir(), "text")
	content([]byte("no ledger"))(t, text)
	before := runtime.NumGoroutine()
	for range 20 {
		if _, err := Open(t.Context(), Options{Path: text}); err == nil {
			t.Fatal("Open() of a text = nil")
		}
		l, err := Open(t.Context(), Options{Path: path})
		must(t, "Open()", err)
		for range 8 {
			now(t, l)
		}
		must(t, "Close()", l.Close(t.Context()))
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after Close, %d before", runtime.NumGoroutine(), before)
}
