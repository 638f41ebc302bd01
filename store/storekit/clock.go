package storekit

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// WithClock is a ledger whose time comes from a clock elsewhere, for a store that has none, or a poor one. now reads
// that clock; all workers of the ledger must use the same, or Stamp.Skew must cover their differences. Tail gives no
// stamp for free then, receipts have none, and what the ledger says of its own clock and copies isn't passed on. What else
// it has is there by [store.As].
func WithClock(l store.Ledger, now func(ctx context.Context) (store.Stamp, error)) store.Ledger {
	return elsewhere{l, now}
}

// elsewhere is a ledger with another clock.
type elsewhere struct {
	store.Ledger

	now func(ctx context.Context) (store.Stamp, error)
}

func (l elsewhere) Unwrap() store.Ledger { return l.Ledger }

func (l elsewhere) Describe() store.Description {
	d := store.Describe(l.Ledger)
	d.FailoverFloor, d.Note, d.OpenCopy = 0, nil, nil
	return d
}

func (l elsewhere) Append(ctx context.Context, r store.Record) error {
	inner, receipt := store.WithReceipt(ctx)
	err := l.Ledger.Append(inner, r)
	store.Charge(ctx, receipt.Units())
	return err
}

// AppendAfter is that of the ledger, if it is a store.Follower.
func (l elsewhere) AppendAfter(ctx context.Context, r, prev store.Record) error {
	f, ok := store.As[store.Follower](l.Ledger)
	if !ok {
		return fmt.Errorf("append after a record: %w", errors.ErrUnsupported)
	}
	inner, receipt := store.WithReceipt(ctx)
	err := f.AppendAfter(inner, r, prev)
	store.Charge(ctx, receipt.Units())
	return err
}

func (l elsewhere) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, _, err := l.Ledger.Tail(ctx, workerType, limit)
	return records, store.Stamp{}, err
}

func (l elsewhere) Now(ctx context.Context) (store.Stamp, error) { return l.now(ctx) }
