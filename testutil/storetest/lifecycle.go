package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// operation is one of a ledger.
type operation struct {
	name string
	call func(ctx context.Context, l store.Ledger) error
}

// operations are all but Close. What a store can't do is left out.
func (b *bench) operations() []operation {
	all := []operation{
		{"Init", func(ctx context.Context, l store.Ledger) error { return l.Init(ctx) }},
		{"Append", func(ctx context.Context, l store.Ledger) error { return l.Append(ctx, Grant("job", 2)) }},
		{"Get", func(ctx context.Context, l store.Ledger) error { _, err := l.Get(ctx, "job", 1); return err }},
		{"Tail", func(ctx context.Context, l store.Ledger) error { _, _, err := l.Tail(ctx, "job", 3); return err }},
		{"Trim", func(ctx context.Context, l store.Ledger) error { _, err := l.Trim(ctx, "job", 1); return err }},
		{"WorkerTypes", func(ctx context.Context, l store.Ledger) error { _, err := l.WorkerTypes(ctx); return err }},
		{"Now", func(ctx context.Context, l store.Ledger) error { _, err := l.Now(ctx); return err }},
	}
	if _, ok := store.As[store.Follower](b.Ledger); ok {
		all = append(all, operation{"AppendAfter", func(ctx context.Context, l store.Ledger) error {
			f, _ := store.As[store.Follower](l)
			// Whether the record below is there depends on the case.
			if err := f.AppendAfter(ctx, Grant("job3", 2), Grant("job3", 1)); !errors.Is(err, store.ErrWentBack) {
				return err
			}
			return nil
		}})
	}
	if _, ok := store.As[store.Pager](b.Ledger); ok {
		all = append(all, operation{"Page", func(ctx context.Context, l store.Ledger) error {
			p, _ := store.As[store.Pager](l)
			_, err := p.Page(ctx, "job", 0, 3)
			return err
		}})
	}
	return all
}

// emptyCases begin before Init.
var emptyCases = []testCase{
	{"Init by many at once works", func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		for range 8 {
			l := b.handle(t)
			ctx := within(t)
			wg.Go(func() {
				if err := l.Init(ctx); err != nil {
					t.Errorf("Init() at the same time as others = %v, want nil", err)
				}
			})
		}
		wg.Wait()
		add(t, b, Grant("job", 1))
	}},
	{"a ledger that was never initialised works, or says ErrMissing", func(t *testing.T, b *bench) {
		for _, op := range b.operations()[1:] {
			if err := op.call(within(t), b.handle(t)); err != nil && !errors.Is(err, store.ErrMissing) && !(op.name == "Get" && errors.Is(err, store.ErrNotFound)) {
				t.Errorf("%s without Init = %v, want it to work or ErrMissing", op.name, err)
			}
		}
		if err := b.Init(within(t)); err != nil {
			t.Fatalf("Init() = %v, want nil", err)
		}
		add(t, b, Grant("job", 7))
		wantSeqs(t, "Tail(job, 1) after Init", tail(t, b, "job", 1), 7)
	}},
	{"a start without Init says what to do, and works after Init by two at once", func(t *testing.T, b *bench) {
		// What is asked before a worker starts: see workerlease.Client.Ready.
		start := func() error {
			l := b.handle(t)
			if check := store.Describe(l).CheckRights; check != nil {
				if err := check(within(t)); err != nil {
					return err
				}
			}
			_, _, err := l.Tail(within(t), "job", 1)
			return err
		}
		for range 2 { // The first must not create anything.
			if err := start(); err != nil && (!errors.Is(err, store.ErrMissing) || !strings.Contains(store.Remedy(err), "Init")) {
				t.Errorf("a start without Init = %v, to try: %s; want nil, or ErrMissing and to call Init", err, store.Remedy(err))
			}
		}
		var wg sync.WaitGroup
		for range 2 {
			l, ctx := b.handle(t), within(t)
			wg.Go(func() {
				if err := l.Init(ctx); err != nil {
					t.Errorf("Init() at the same time as another = %v, want nil", err)
				}
			})
		}
		wg.Wait()
		if err := start(); err != nil {
			t.Errorf("a start after Init = %v, want nil", err)
		}
		add(t, b, Grant("job", 1))
	}},
	{"the key is unique even if Init was never called", func(t *testing.T, b *bench) {
		second := b.handle(t)
		err := b.Append(within(t), claimed("job", 1, "first"))
		if errors.Is(err, store.ErrMissing) {
			return
		}
		if err != nil {
			t.Fatalf("Append without Init = %v, want nil or ErrMissing", err)
		}
		wantConflict(t, second, claimed("job", 1, "second"))
		wantRecord(t, "Get(job, 1)", get(t, second, "job", 1), claimed("job", 1, "first"))
	}},
}

var lifecycleCases = []testCase{
	{"Init may be repeated and changes nothing that is there", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		for range 2 {
			for _, h := range []store.Ledger{b, b.handle(t)} {
				if err := h.Init(within(t)); err != nil {
					t.Errorf("Init(), repeated = %v, want nil", err)
				}
			}
		}
		wantSeqs(t, "Tail(job) after Init", tail(t, b, "job", 9), 3, 2, 1)
		wantConflict(t, b, claimed("job", 2, "second"))
	}},
	{"every operation of a closed ledger is ErrClosed", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		if err := b.Close(within(t)); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		for _, op := range b.operations() {
			if err := op.call(within(t), b.Ledger); !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s after Close = %v, want ErrClosed", op.name, err)
			}
		}
	}},
	{"Close may be called twice, and by many at once", func(t *testing.T, b *bench) {
		ctx := within(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 2 {
					if err := b.Close(ctx); err != nil && !errors.Is(err, store.ErrClosed) {
						t.Errorf("Close(), repeated = %v, want nil or ErrClosed", err)
					}
				}
			})
		}
		wg.Wait()
	}},
	{"what a store says of its durability is one plain sentence for each case, before and after Close", func(t *testing.T, b *bench) {
		durability := store.Describe(b.Ledger).Durability
		if durability == nil {
			return // It need not say anything.
		}
		said := func(when string) {
			for what, text := range map[string]string{"Crash": durability().Crash, "Power": durability().Power, "Failover": durability().Failover} {
				if len(text) < 10 || len(text) > 300 || !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\r") {
					t.Errorf("Durability().%s %s = %q, want a sentence in one line of at most 300 bytes", what, when, text)
				}
			}
		}
		said("of an open ledger")
		if err := b.Close(within(t)); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		said("of a closed ledger")
	}},
	{"closing one handle leaves the data and the other handles alone", func(t *testing.T, b *bench) {
		other := b.handle(t)
		add(t, b, Grant("job", 1))
		if err := b.Close(within(t)); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		add(t, other, Grant("job", 2))
		wantSeqs(t, "Tail(job) by another handle", tail(t, other, "job", 9), 2, 1)
		wantSeqs(t, "Tail(job) by a new handle", tail(t, b.handle(t), "job", 9), 2, 1)
	}},
	{"Close during operations ends them and harms no record", func(t *testing.T, b *bench) {
		other := b.handle(t)
		ctx := within(t)
		var mu sync.Mutex
		var acknowledged []store.Record
		begun := make(chan struct{}, 4)
		var closed atomic.Bool
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for seq := int64(1); ; seq++ {
					r := Grant([]string{"a", "b", "c", "d"}[g], seq)
					late := closed.Load()
					if b.Append(ctx, r) != nil {
						return
					}
					if late {
						t.Errorf("Append() begun after Close = nil, want ErrClosed")
						return
					}
					mu.Lock()
					acknowledged = append(acknowledged, r)
					mu.Unlock()
					if seq == 3 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range 4 {
			select {
			case <-begun:
			case <-ctx.Done():
				t.Fatal("the appends failed before Close")
			}
		}
		if err := b.Close(ctx); err != nil {
			t.Errorf("Close() during appends = %v, want nil", err)
		}
		closed.Store(true)
		wg.Wait()
		for _, r := range acknowledged[max(0, len(acknowledged)-40):] {
			wantRecord(t, "an append acknowledged before Close", get(t, other, r.WorkerType, r.Seq), r)
		}
	}},
}

// soon bounds how long an operation may take to notice that its context ended, and a clock to advance.
var soon = suites.Limit(5*time.Second, time.Minute)

var contextCases = []testCase{
	ended("a cancelled context ends every operation at once with its error", context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}),
	ended("a deadline in the past ends every operation at once with its error", context.DeadlineExceeded, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, wall.Now().Add(-time.Hour))
	}),
	ended("a context cancelled with a cause of its own still shows as cancelled", context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("lease expired"))
		return ctx, func() {}
	}),
	ended("a context cancelled because another operation failed takes nothing from its error", context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errors.Join(store.ErrConflict, store.ErrNotFound))
		return ctx, func() {}
	}),
	{"a context that ends in the middle of an append leaves it done or undone", func(t *testing.T, b *bench) {
		for seq := int64(1); seq <= 60; seq++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seq*seq)*time.Microsecond)
			began := wall.Now()
			err := b.Append(ctx, Grant("job", seq))
			took := wall.Since(began)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Append(job, %d) with a short deadline = %v, want nil or the context's error", seq, err)
			}
			if took > soon {
				t.Errorf("Append(job, %d) with a short deadline took %v, want it to end soon after", seq, took)
			}
			if err != nil {
				continue
			}
			wantRecord(t, "an acknowledged append", get(t, b, "job", seq), Grant("job", seq))
		}
		for _, r := range tail(t, b, "job", 99) {
			wantRecord(t, "an append that was cut off", r, Grant("job", r.Seq))
		}
		add(t, b, Grant("job", 99))
	}},
}

// ended is a case in which every operation must fail with the error of its context, and the
// ledger must work afterwards.
func ended(name string, want error, end func(context.Context) (context.Context, context.CancelFunc)) testCase {
	return testCase{name, func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		ctx, cancel := end(t.Context())
		defer cancel()
		for _, op := range b.operations() {
			began := wall.Now()
			err := op.call(ctx, b.Ledger)
			if took := wall.Since(began); took > soon {
				t.Errorf("%s with an ended context took %v, want it to return at once", op.name, took)
			}
			if !errors.Is(err, want) {
				t.Errorf("%s with an ended context = %v, want an error that matches %v", op.name, err, want)
			}
			if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s with an ended context = %v, want no outcome: nothing was asked", op.name, err)
			}
		}
		wantRecord(t, "Get(job, 1) afterwards", get(t, b, "job", 1), Grant("job", 1))
		add(t, b, Grant("job", 9))
	}}
}
