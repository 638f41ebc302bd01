package documenttest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// LeavesNoGoroutine demands that ledgers of a server that doesn't answer leave none when they are closed. The test isn't parallel.
func LeavesNoGoroutine(t *testing.T, open func() (store.Ledger, error)) {
	t.Helper()
	use := func() {
		l, err := open()
		Must(t, "Open()", err)
		for range 8 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _, _ = l.Tail(ctx, "job", 1)
			cancel()
		}
		Must(t, "Close()", l.Close(Within(t, time.Minute)))
	}
	use()
	before := runtime.NumGoroutine()
	for range 10 {
		use()
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after Close, %d before", runtime.NumGoroutine(), before)
}
