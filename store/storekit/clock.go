package storekit

import (
	"context"

	"github.com/slotlease/slotlease/store"
)

// WithClock is a ledger whose time comes from a clock elsewhere, for a store that has none, or a poor one. now reads
// that clock; all workers of the ledger must use the same, or Stamp.Skew must cover their differences. Tail gives no
// stamp for free then, and receipts have none. The optional interfaces of package store that the ledger has are
// hidden, but for store.Roster, store.Pager and store.Examiner.
func WithClock(l store.Ledger, now func(ctx context.Context) (store.Stamp, error)) store.Ledger {
	timed := elsewhere{l, now}
	roster, isRoster := l.(store.Roster)
	pager, isPager := l.(store.Pager)
	examiner, isExaminer := l.(store.Examiner)
	switch {
	case isRoster && isPager && isExaminer:
		return struct {
			store.Ledger
			store.Roster
			store.Pager
			store.Examiner
		}{timed, roster, pager, examiner}
	case isRoster && isExaminer:
		return struct {
			store.Ledger
			store.Roster
			store.Examiner
		}{timed, roster, examiner}
	case isRoster && isPager:
		return struct {
			store.Ledger
			store.Roster
			store.Pager
		}{timed, roster, pager}
	case isRoster:
		return struct {
			store.Ledger
			store.Roster
		}{timed, roster}
	case isPager && isExaminer:
		return struct {
			store.Ledger
			store.Pager
			store.Examiner
		}{timed, pager, examiner}
	case isPager:
		return struct {
			store.Ledger
			store.Pager
		}{timed, pager}
	case isExaminer:
		return struct {
			store.Ledger
			store.Examiner
		}{timed, examiner}
	}
	return timed
}

// elsewhere is a ledger with another clock.
type elsewhere struct {
	store.Ledger

	now func(ctx context.Context) (store.Stamp, error)
}

func (l elsewhere) Append(ctx context.Context, r store.Record) error {
	inner, receipt := store.WithReceipt(ctx)
	err := l.Ledger.Append(inner, r)
	store.Charge(ctx, receipt.Units())
	return err
}

func (l elsewhere) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, _, err := l.Ledger.Tail(ctx, workerType, limit)
	return records, store.Stamp{}, err
}

func (l elsewhere) Now(ctx context.Context) (store.Stamp, error) { return l.now(ctx) }
