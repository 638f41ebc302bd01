package store

import (
	"context"
	"sync"
)

// Receipt collects what operations report besides their results: their charge, and
// the store's clock. The caller passes the context of [WithReceipt] to operations;
// the store calls [Charge] and [Tell], and should do so for failed operations, too.
// Its methods are safe for concurrent use.
type Receipt struct {
	mu    sync.Mutex
	units float64
	stamp Stamp
}

// receiptKey is the context key of a Receipt.
type receiptKey struct{}

// WithReceipt returns a context whose operations report to the receipt. A request
// that was abandoned may still add to it after its operation has returned.
func WithReceipt(ctx context.Context) (context.Context, *Receipt) {
	r := &Receipt{}
	return context.WithValue(ctx, receiptKey{}, r), r
}

// Units is the total charge so far, in the store's own unit (request units for
// Cosmos DB). It is zero for stores that don't bill operations.
func (r *Receipt) Units() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.units
}

// Stamp is the newest reported reading of the store's clock, or the zero Stamp. It
// was made between the call of the operation, less Stamp.MaxAge, and its return.
// Operations that return a Stamp themselves (Tail, Now) don't report it here.
func (r *Receipt) Stamp() Stamp {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stamp
}

// Charge adds the charge of a request to the receipt of ctx, if it has one.
func Charge(ctx context.Context, units float64) {
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok && units > 0 {
		r.mu.Lock()
		r.units += units
		r.mu.Unlock()
	}
}

// Tell puts a reading of the store's clock on the receipt of ctx, if it has one.
func Tell(ctx context.Context, s Stamp) {
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok {
		r.mu.Lock()
		r.stamp = s
		r.mu.Unlock()
	}
}
