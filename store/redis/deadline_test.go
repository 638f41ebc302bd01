package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// operations are all of a ledger.
var operations = map[string]func(ctx context.Context, l *Ledger) error{
	"Append":      func(ctx context.Context, l *Ledger) error { return l.Append(ctx, storetest.Grant("job", 2)) },
	"Get":         func(ctx context.Context, l *Ledger) error { _, err := l.Get(ctx, "job", 1); return err },
	"Tail":        func(ctx context.Context, l *Ledger) error { _, _, err := l.Tail(ctx, "job", 1); return err },
	"Page":        func(ctx context.Context, l *Ledger) error { _, err := l.Page(ctx, "job", 0, 9); return err },
	"Trim":        func(ctx context.Context, l *Ledger) error { _, err := l.Trim(ctx, "job", 1); return err },
	"WorkerTypes": func(ctx context.Context, l *Ledger) error { _, err := l.WorkerTypes(ctx); return err },
	"Now":         func(ctx context.Context, l *Ledger) error { _, err := l.Now(ctx); return err },
	"Init":        func(ctx context.Context, l *Ledger) error { return l.Init(ctx) },
	"Attend": func(ctx context.Context, l *Ledger) error {
		return l.Attend(ctx, []store.Presence{storetest.Presence("job", "a")})
	},
	"Leave":       func(ctx context.Context, l *Ledger) error { return l.Leave(ctx, "job", []string{"a"}) },
	"Presences":   func(ctx context.Context, l *Ledger) error { _, err := l.Presences(ctx, ""); return err },
	"CheckRights": func(ctx context.Context, l *Ledger) error { return l.CheckRights(ctx) },
	"Watch":       func(ctx context.Context, l *Ledger) error { return l.Watch(ctx, func(string) {}) },
}

// More operations at once than there are connections wait for their turns, and end with their contexts.
func TestManyOperationsShareFewConnections(t *testing.T) {
	s := redispeer.Start(t, redispeer.Options{Flags: []string{"--maxclients", "50"}})
	l := open(t, s.URI())
	must(t, "Append()", appendTo(t, l, 1))
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, _, err := l.Tail(t.Context(), "job", 1); err != nil {
				t.Errorf("Tail() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	s.Pause()
	for range 100 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, _, err := l.Tail(ctx, "job", 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Tail() by a paused server = %v, want the context's error", err)
			}
		})
	}
	all.Wait()
	s.Resume()
	// The server notices one by one that nobody is there any more.
	await(t, "an append", func() bool { return appendTo(t, l, 2) == nil })
}

func TestASilentServerIsGivenUpWithoutADeadline(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := open(t, s.URI())
	l.patience = 500 * time.Millisecond
	await(t, "an answer in so short a time", func() bool { return operations["Now"](t.Context(), l) == nil })
	s.Pause()
	began := time.Now()
	err := l.Append(context.WithoutCancel(t.Context()), storetest.Grant("job", 2))
	if took := time.Since(began); err == nil || errors.Is(err, store.ErrNotStored) || took > 10*time.Second {
		t.Errorf("Append() by a paused server = %v after %v, want an unknown outcome soon", err, took)
	}
	if _, err := l.Now(context.WithoutCancel(t.Context())); err == nil {
		t.Error("Now() by a paused server = nil, want an error")
	}
	if patience <= mostWait {
		t.Errorf("a server may be silent for %v, and a WAIT takes up to %v", patience, mostWait)
	}
}
