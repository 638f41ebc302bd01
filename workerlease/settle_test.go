package workerlease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// The tests of clocks.Fake show that all has happened when Settle returns.
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
		if next, err := client.Settle(t.Context()); err != nil || next.Sub(t0) > 5*time.Minute || !next.After(time.Now()) {
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
