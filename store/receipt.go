package store

import (
	"context"
	"sync"
)

// Receipt collects what a store tells of operations besides their results: what
// they were charged, and its clock. A caller that wants to know gives the
// operations the context of [WithReceipt]; a store that has something to tell
// calls [Charge] and [Tell], and does well to do so for operations that failed,
// too. Its methods are safe for concurrent use.
type Receipt struct {
	mu    sync.Mutex
	units float64
	stamp Stamp
}

// receiptKey is the context key of a Receipt.
type receiptKey struct{}

// WithReceipt is ctx for operations whose receipt is wanted. What was told after
// an operation has returned, by a request that was given up, adds to it as well.
func WithReceipt(ctx context.Context) (context.Context, *Receipt) {
	r := &Receipt{}
	return context.WithValue(ctx, receiptKey{}, r), r
}

// Units is what the operations were charged so far, in the store's own unit
// (request units of Cosmos DB). Zero for stores that don't bill operations.
func (r *Receipt) Units() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.units
}

// Stamp is the newest reading of the store's clock that was told: made after the
// operation was called, but for Stamp.MaxAge, and before it returned. Operations
// that return a Stamp themselves (Tail, Now) don't tell it here. The zero Stamp if
// there was none.
func (r *Receipt) Stamp() Stamp {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stamp
}

// Charge puts what a request was charged on the receipt of ctx, if there is one.
func Charge(ctx context.Context, units float64) {
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok && units > 0 {
		r.mu.Lock()
		r.units += units
		r.mu.Unlock()
	}
}

// Tell puts a reading of the store's clock on the receipt of ctx, if there is one.
func Tell(ctx context.Context, s Stamp) {
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok {
		r.mu.Lock()
		r.stamp = s
		r.mu.Unlock()
	}
}
