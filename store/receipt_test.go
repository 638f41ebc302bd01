package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestAReceiptSumsChargesAndKeepsTheNewestStamp(t *testing.T) {
	ctx, receipt := store.WithReceipt(t.Context())
	if receipt.Units() != 0 || !receipt.Stamp().IsZero() {
		t.Errorf("a fresh receipt has %v units and the stamp %+v", receipt.Units(), receipt.Stamp())
	}
	var requests sync.WaitGroup
	for range 100 {
		requests.Go(func() { store.Charge(ctx, 0.5) })
	}
	requests.Wait()
	store.Charge(ctx, -1)
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		store.Tell(ctx, store.Stamp{Time: noon.Add(time.Duration(i) * time.Second)})
	}
	if got := receipt.Units(); got != 50 {
		t.Errorf("Units() = %v, want 50", got)
	}
	if got := receipt.Stamp().Time; !got.Equal(noon.Add(2 * time.Second)) {
		t.Errorf("Stamp() = %v, want the newest", got)
	}
	inner, other := store.WithReceipt(ctx)
	store.Charge(inner, 1)
	if receipt.Units() != 50 || other.Units() != 1 {
		t.Errorf("Units() = %v and %v, want the innermost receipt to be charged", receipt.Units(), other.Units())
	}
}

func TestWithoutAReceiptNothingIsKept(*testing.T) {
	store.Charge(context.Background(), 1)
	store.Tell(context.Background(), store.Stamp{Time: time.Unix(1, 0)})
}
