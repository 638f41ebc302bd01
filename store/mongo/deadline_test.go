package mongo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
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
	for name, first := range map[string]bool{"of the first operation": true, "of a later one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			l := f.open(Options{})
			if !first {
				if _, _, err := l.Tail(t.Context(), "job", 1); err != nil {
					t.Fatal(err)
				}
			}
			f.slow.Store(int64(2 * time.Second))
			_, _, err := l.Tail(within(t, 50*time.Millisecond), "job", 1)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("Tail() past its deadline = %v, want %v, and no cancellation", err, context.DeadlineExceeded)
			}
		})
	}
}

// A server that gives up a find at its maxTimeMS, and says so in no error, would make
// of a record that is there one that isn't.
func TestReadsDoNotTellTheServerTheirDeadline(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	l := f.open(Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := l.Get(ctx, "job", 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() = %v, want %v", err, store.ErrNotFound)
	}
	if _, _, err := l.Tail(ctx, "job", 3); err != nil {
		t.Errorf("Tail() = %v, want nil", err)
	}
	if _, err := l.Trim(ctx, "job", 3); err != nil {
		t.Errorf("Trim() = %v, want nil", err)
	}
	if _, err := l.WorkerTypes(ctx); err != nil {
		t.Errorf("WorkerTypes() = %v, want nil", err)
	}
	finds := f.sent("find")
	if len(finds) < 4 {
		t.Errorf("%d finds were sent, want at least one for each read", len(finds))
	}
	for _, find := range finds {
		if _, err := find.LookupErr("maxTimeMS"); err == nil {
			t.Errorf("sent %s, want no maxTimeMS", find)
		}
	}
}
