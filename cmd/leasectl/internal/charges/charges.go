// Package charges adds up a store's charges for reading a ledger.
package charges

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Ledger is a ledger that adds up its store's charges for reading it. A read that fails
// counts, too. It is safe for concurrent use.
type Ledger struct {
	store.Ledger

	mu  sync.Mutex
	sum workerlease.Charges
}

// Charges are the sums so far; nil if the store charges nothing.
func (l *Ledger) Charges() workerlease.Charges {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sum)
}

// receipt is a context for an operation. Call the function when it has returned.
func (l *Ledger) receipt(ctx context.Context, operation string) (context.Context, func()) {
	ctx, receipt := store.WithReceipt(ctx)
	return ctx, func() {
		units := receipt.Units()
		if units == 0 {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sum == nil {
			l.sum = workerlease.Charges{}
		}
		l.sum[operation] += units
	}
}

// Tail reads the newest records.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	ctx, done := l.receipt(ctx, "tail")
	defer done()
	return l.Ledger.Tail(ctx, workerType, limit)
}

// Now reads the store's clock.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	ctx, done := l.receipt(ctx, "now")
	defer done()
	return l.Ledger.Now(ctx)
}

// WorkerTypes lists the worker types.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	ctx, done := l.receipt(ctx, "workerTypes")
	defer done()
	return l.Ledger.WorkerTypes(ctx)
}

// Get reads one record.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	ctx, done := l.receipt(ctx, "get")
	defer done()
	return l.Ledger.Get(ctx, workerType, seq)
}

// Page reads the oldest records above a Seq. The error matches errors.ErrUnsupported if the store has
// no pages.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	pager, ok := l.Ledger.(store.Pager)
	if !ok {
		return nil, fmt.Errorf("page: the ledger has no pages: %w", errors.ErrUnsupported)
	}
	ctx, done := l.receipt(ctx, "page")
	defer done()
	return pager.Page(ctx, workerType, after, limit)
}

// Presences lists the presences of a worker type, or of all. The error matches errors.ErrUnsupported if
// the store keeps no roster.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	roster, ok := l.Ledger.(store.Roster)
	if !ok {
		return nil, fmt.Errorf("presences: the ledger keeps no roster: %w", errors.ErrUnsupported)
	}
	ctx, done := l.receipt(ctx, "presences")
	defer done()
	return roster.Presences(ctx, workerType)
}

// JSON is the JSON form of charges. Its names don't change.
type JSON struct {
	Total       float64            `json:"total"`
	ByOperation map[string]float64 `json:"byOperation"`
}

// ToJSON is the JSON form of charges, nil if there are none.
func ToJSON(c workerlease.Charges) *JSON {
	if len(c) == 0 {
		return nil
	}
	units := &JSON{Total: Round(c.Total()), ByOperation: map[string]float64{}}
	for op, n := range c {
		units.ByOperation[op] = Round(n)
	}
	return units
}

// Text is charges for people, or "" if there are none.
func Text(c workerlease.Charges) string {
	if len(c) == 0 {
		return ""
	}
	var each []string
	for _, op := range slices.Sorted(maps.Keys(c)) {
		each = append(each, fmt.Sprintf("%s %.2f", op, c[op]))
	}
	return fmt.Sprintf("%.2f request units: %s", c.Total(), strings.Join(each, ", "))
}

// Round rounds request units to hundredths: sums of decimal fractions have too many
// digits.
func Round(units float64) float64 { return math.Round(units*100) / 100 }
