package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
)

var (
	_ store.Pager = (*Ledger)(nil)
	_ store.Pager = (*Counter)(nil)
)

// Page passes on to the inner ledger. A stale page lacks the hidden records. The error matches
// errors.ErrUnsupported if the inner ledger has no pages.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	p, err := pagerOf(l.inner)
	if err != nil {
		return nil, err
	}
	return do(ctx, l, Call{Op: OpPage, WorkerType: workerType, Seq: after}, func(f Fault) ([]store.Record, error) {
		page, err := p.Page(ctx, workerType, after, limit)
		if err != nil || f.HideNewest <= 0 {
			return page, err
		}
		newest, _, err := l.inner.Tail(ctx, workerType, f.HideNewest)
		if err != nil {
			return nil, err
		}
		all := len(page)
		page = slices.DeleteFunc(page, func(r store.Record) bool {
			return slices.ContainsFunc(newest, func(n store.Record) bool { return n.Seq == r.Seq })
		})
		if len(page) < all {
			l.strike(KindStale)
		}
		return page, nil
	})
}

// Page passes on to the inner ledger. If that has no pages, it is neither counted nor logged, and the
// error matches errors.ErrUnsupported.
func (c *Counter) Page(ctx context.Context, workerType string, after int64, limit int) (page []store.Record, err error) {
	p, err := pagerOf(c.inner)
	if err != nil {
		return nil, err
	}
	defer c.begin(OpPage, workerType, after)(&err)
	return p.Page(ctx, workerType, after, limit)
}

func pagerOf(inner store.Ledger) (store.Pager, error) {
	p, ok := inner.(store.Pager)
	if !ok {
		return nil, fmt.Errorf("faultstore: %s: %w", OpPage, errors.ErrUnsupported)
	}
	return p, nil
}
