package mongo

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The driver remembers how slow the network was for as long as 10 s.
func TestANetworkThatIsFastAgainIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.slow.Store(int64(400 * time.Millisecond))
	l := f.open(Options{})
	if _, err := l.Now(t.Context()); err != nil {
		t.Fatalf("Now() over a slow network = %v", err)
	}
	f.slow.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	if _, err := l.Now(ctx); err != nil {
		t.Errorf("Now() with less time than it took before = %v, want nil", err)
	}
}

func TestTheEndOfADeadlineIsNoCancellation(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.slow.Store(int64(2 * time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := f.open(Options{}).Now(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("Now() past its deadline = %v, want %v, and no cancellation", err, context.DeadlineExceeded)
	}
}
