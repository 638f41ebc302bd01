//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// handoverFigures are how long after a holder began to stop the standby works.
type handoverFigures struct {
	Store         string
	Slot          time.Duration
	Times         int
	P50, P99, Max time.Duration
}

func (f handoverFigures) String() string {
	return fmt.Sprintf("%d clean hand-overs on %s, slots of %v, extended all the time: p50 %v, p99 %v, at most %v",
		f.Times, f.Store, f.Slot, f.P50, f.P99, f.Max)
}

// handover stops the holder of a continuous lease again and again.
func handover(ctx context.Context, ledger store.Ledger, o settings) (any, error) {
	began := make(chan string, 16)
	var number atomic.Int64
	start := func() (*workerlease.WorkerLease, string, error) {
		name := fmt.Sprintf("instance-%d", number.Add(1))
		w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(ctx, workerlease.Options{
			WorkerType: "job", InstanceID: name, LeaseInterval: o.slot, Continuous: true, JoinMidSlot: true,
		}, workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) { began <- name }})
		return w, name, err
	}
	workers := map[string]*workerlease.WorkerLease{}
	for range 2 {
		w, name, err := start()
		if err != nil {
			return nil, err
		}
		workers[name] = w
	}
	holder, err := next(ctx, began)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for range o.slots {
		// Somewhere in the slot, so that the standby isn't about to look anyway.
		if err := until(ctx, time.Now().Add(o.slot/2)); err != nil {
			return nil, err
		}
		stopped := time.Now()
		old := workers[holder]
		delete(workers, holder)
		go func() { _ = old.StopLeasing(context.Background()) }()
		if holder, err = next(ctx, began); err != nil {
			return nil, err
		}
		took = append(took, time.Since(stopped))
		w, name, err := start()
		if err != nil {
			return nil, err
		}
		workers[name] = w
	}
	for _, w := range workers {
		_ = w.StopLeasing(context.Background())
	}
	slices.Sort(took)
	return handoverFigures{
		Store: o.store, Slot: o.slot, Times: len(took),
		P50: percentile(took, 50), P99: percentile(took, 99), Max: took[len(took)-1],
	}, nil
}

func next(ctx context.Context, began <-chan string) (string, error) {
	select {
	case name := <-began:
		return name, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
