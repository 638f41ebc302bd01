package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// diary is what callbacks write down.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last take.
func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.lines = nil }()
	return slices.Clone(d.lines)
}

func TestWithAFakeClockSettleReturnsWhenAllHasHappened(t *testing.T) {
	mock := clock.NewMock()
	mock.Set(t0)
	ledger := memory.New(memory.Options{Clock: mock})
	var log diary
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: mock})
	var workers []*workerlease.WorkerLease
	for i := range 3 {
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job", Priority: i}, workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				log.add("%d allocated", i)
				<-ctx.Done()
			},
			LeaseExpired: func(workerlease.Lease, workerlease.Reason) { log.add("%d expired", i) },
		})
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
	}
	// to moves the clock from one time at which something happens to the next.
	to := func(d time.Duration) {
		t.Helper()
		for {
			next, err := client.Settle(t.Context())
			if err != nil {
				t.Fatalf("Settle: %v", err)
			}
			if !next.After(mock.Now()) {
				t.Fatalf("Settle = %v, want a time after now, %v", next, mock.Now())
			}
			if next.After(t0.Add(d)) {
				break
			}
			mock.Set(next)
		}
		mock.Set(t0.Add(d))
		if _, err := client.Settle(t.Context()); err != nil {
			t.Fatalf("Settle: %v", err)
		}
	}
	to(5 * time.Minute)
	equal(t, "before the first slot", log.take())
	to(5*time.Minute + 20*time.Millisecond)
	equal(t, "at its start", log.take(), "0 allocated")
	to(9*time.Minute + 59*time.Second)
	equal(t, "within it", log.take())
	to(10 * time.Minute)
	equal(t, "before its end", log.take(), "0 expired")
	to(10*time.Minute + 20*time.Millisecond)
	equal(t, "at the start of the next", log.take(), "0 allocated")
	if err := workers[0].StopLeasing(t.Context()); err != nil {
		t.Errorf("StopLeasing: %v", err)
	}
	to(16 * time.Minute)
	equal(t, "after stopping the first", log.take(), "0 expired", "1 allocated")
	for _, w := range workers {
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Errorf("StopLeasing: %v", err)
		}
	}
	if next, err := client.Settle(t.Context()); !next.IsZero() || err != nil {
		t.Errorf("Settle without workers = %v, %v; want zero, nil", next, err)
	}
}

func TestSettleWaitsForCodeThatNeitherReturnsNorAsksForTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		client := newClient(&worker{}, setup{ledger: memory.New(memory.Options{})})
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) { <-let },
		})
		if err != nil {
			t.Fatal(err)
		}
		at(4 * time.Minute)
		if next, err := client.Settle(t.Context()); err != nil || next.Sub(t0) > 5*time.Minute {
			t.Errorf("Settle = %v, %v; want the opening of claims", next, err)
		}
		at(6 * time.Minute)
		impatient := errors.New("impatient")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, impatient)
		defer cancel()
		if _, err := client.Settle(ctx); !errors.Is(err, impatient) {
			t.Errorf("Settle while the code runs = %v, want the cause of its context", err)
		}
		close(let)
		if _, err := client.Settle(t.Context()); err != nil {
			t.Errorf("Settle after it returned: %v", err)
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Errorf("StopLeasing: %v", err)
		}
	})
}

func TestSettleForgetsAWorkerThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(&worker{}, setup{ledger: memory.New(memory.Options{})})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			w := start(t, setup{client: client})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { _ = w.StopLeasing(over) })
			}
			wg.Wait()
			<-w.Done()
			if next, err := client.Settle(over); !next.IsZero() || err != nil {
				t.Fatalf("Settle = %v, %v; want zero, nil", next, err)
			}
		}
	})
}
