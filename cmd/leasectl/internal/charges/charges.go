// Package charges adds up a store's charges for reading a ledger.
package charges

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/around"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Ledger is a ledger that adds up its store's charges for reading it. A read that fails
// counts, too. It is safe for concurrent use.
type Ledger struct {
	around.Ledger

	mu  sync.Mutex
	sum workerlease.Charges
}

// New returns a ledger that adds up the charges for reading another.
func New(of store.Ledger) *Ledger {
	l := &Ledger{}
	l.Ledger = around.Ledger{Ledger: of, Do: l.receipt}
	return l
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
