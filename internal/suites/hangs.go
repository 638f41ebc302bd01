package suites

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Deadline is a context of a test for what takes as long as it takes, but may hang: it ends when a third of the time is over that
// go test leaves the test, and its cause says so. The rest is for the tests behind it, of which others may hang, too. A test without
// a deadline, and a benchmark, get one that ends with them; in a bubble it ends within an hour of the time there.
func Deadline(t testing.TB) context.Context {
	t.Helper()
	left, ok := leftOf(t)
	if !ok {
		return t.Context()
	}
	// realtime: it is that of the test
	ctx, cancel := context.WithTimeoutCause(t.Context(), left/3, fmt.Errorf("%s hangs", t.Name()))
	t.Cleanup(cancel)
	return ctx
}

// leftOf is the time that go test leaves a test, if it has a deadline.
func leftOf(t testing.TB) (left time.Duration, ok bool) {
	limited, _ := t.(interface{ Deadline() (time.Time, bool) })
	if limited == nil {
		return 0, false
	}
	defer func() {
		if recover() != nil { // In a bubble, the deadline can't be had.
			left, ok = time.Hour, true
		}
	}()
	end, ok := limited.Deadline()
	return time.Until(end), ok // realtime: it is that of the test
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
