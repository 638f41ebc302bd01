package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// billed is a ledger that sums what its store charges for being looked at, failed
// looks included.
type billed struct {
	store.Ledger

	mu  sync.Mutex
	sum workerlease.Charges
}

// charges are the sums so far; nil if the store charges nothing.
func (b *billed) charges() workerlease.Charges {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.sum)
}

// receipt is a context for an operation. Call the function when it has returned.
func (b *billed) receipt(ctx context.Context, operation string) (context.Context, func()) {
	ctx, receipt := store.WithReceipt(ctx)
	return ctx, func() {
		units := receipt.Units()
		if units == 0 {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.sum == nil {
			b.sum = workerlease.Charges{}
		}
		b.sum[operation] += units
	}
}

func (b *billed) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	ctx, done := b.receipt(ctx, "tail")
	defer done()
	return b.Ledger.Tail(ctx, workerType, limit)
}

func (b *billed) Now(ctx context.Context) (store.Stamp, error) {
	ctx, done := b.receipt(ctx, "now")
	defer done()
	return b.Ledger.Now(ctx)
}

func (b *billed) WorkerTypes(ctx context.Context) ([]string, error) {
	ctx, done := b.receipt(ctx, "workerTypes")
	defer done()
	return b.Ledger.WorkerTypes(ctx)
}

// unitsJSON is the JSON form of charges. Its names don't change.
type unitsJSON struct {
	Total       float64            `json:"total"`
	ByOperation map[string]float64 `json:"byOperation"`
}

// unitsOf is the JSON form of charges, nil if there are none.
func unitsOf(c workerlease.Charges) *unitsJSON {
	if len(c) == 0 {
		return nil
	}
	units := &unitsJSON{Total: hundredths(c.Total()), ByOperation: map[string]float64{}}
	for op, n := range c {
		units.ByOperation[op] = hundredths(n)
	}
	return units
}

// unitsText are charges for people, or nothing if there are none.
func unitsText(c workerlease.Charges) string {
	if len(c) == 0 {
		return ""
	}
	var each []string
	for _, op := range slices.Sorted(maps.Keys(c)) {
		each = append(each, fmt.Sprintf("%s %.2f", op, c[op]))
	}
	return fmt.Sprintf("%.2f request units: %s", c.Total(), strings.Join(each, ", "))
}

// hundredths rounds away what sums of decimal fractions have too many digits of.
func hundredths(units float64) float64 { return math.Round(units*100) / 100 }
