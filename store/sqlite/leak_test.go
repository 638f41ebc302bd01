package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

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
	for range 100 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after 100 opens that failed, %d before", runtime.NumGoroutine(), before)
}
