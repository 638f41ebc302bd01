package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Each sql.DB has a goroutine until it is closed.
func TestAnOpenThatFailsLeavesNothingBehind(t *testing.T) {
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
	suites.Eventually(t, "the goroutines of opens that failed end", func() bool { return runtime.NumGoroutine() <= before+5 })
}

// A handle keeps a goroutine for its next operation, until Close.
func TestAClosedHandleLeavesNoGoroutine(t *testing.T) {
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
	suites.Eventually(t, "the goroutines of closed handles end", func() bool { return runtime.NumGoroutine() <= before })
}
