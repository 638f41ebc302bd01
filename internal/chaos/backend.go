//go:build linux

package main

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/store"
)

// backend is a store that can be struck.
type backend interface {
	// address is --store for a worker.
	address(t workerType, index int) string
	// strike causes a fault of the store or the network. It returns the function that
	// ends the fault, or nil if it found nothing to strike.
	strike(f fault, t workerType, index int) (undo func() error, err error)
	// open opens the ledger of a worker type, past the faults.
	open(ctx context.Context, t workerType) (store.Ledger, error)
}

// offsetOf is store time at 0 of the boot clock, by the quickest of some readings.
func offsetOf(ctx context.Context, l store.Ledger) (time.Time, error) {
	var at time.Time
	quickest := time.Hour
	for range 10 {
		before := boottime()
		s, err := l.Now(ctx)
		took := boottime() - before
		if err != nil {
			return at, err
		}
		if took < quickest {
			quickest = took
			at = s.Time.Add(s.Granularity/2 - before - took/2)
		}
	}
	return at, nil
}
