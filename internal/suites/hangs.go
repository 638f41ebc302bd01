package suites

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Deadline is a context of a test for what takes as long as it takes, but may hang: it ends when 95 % of the time is over that
// go test leaves the test, and its cause says so. A test without a deadline, and a benchmark, get one that ends with them. It
// can't be had in a bubble.
func Deadline(t testing.TB) context.Context {
	t.Helper()
	limited, _ := t.(interface{ Deadline() (time.Time, bool) })
	if limited == nil {
		return t.Context()
	}
	end, ok := limited.Deadline()
	if !ok {
		return t.Context()
	}
	// realtime: it is that of the test
	left := time.Until(end)
	why := fmt.Errorf("%s hangs: go test ends it in %v", t.Name(), left*5/100)
	// realtime: it is that of the test
	ctx, cancel := context.WithTimeoutCause(t.Context(), left*95/100, why)
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until something is so, and fails the test if it isn't by its [Deadline].
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for ctx := Deadline(t); !so(); time.Sleep(3 * time.Millisecond) { // realtime: what is outside doesn't say when it is so
		if ctx.Err() != nil {
			t.Fatalf("%s: %v", what, context.Cause(ctx))
		}
	}
}
