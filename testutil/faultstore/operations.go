package faultstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// Init passes on to the inner ledger.
func (l *Ledger) Init(ctx context.Context) error {
	_, err := do(ctx, l, Call{Op: OpInit}, func(Fault) (struct{}, error) {
		return struct{}{}, l.inner.Init(ctx)
	})
	return err
}

// Append passes on to the inner ledger. An invalid record meets no fault: it is refused
// with store.ErrInvalid, and Plan isn't called.
func (l *Ledger) Append(ctx context.Context, r store.Record) error {
	if r.Check() != nil {
		return l.inner.Append(ctx, r)
	}
	_, err := do(ctx, l, Call{Op: OpAppend, WorkerType: r.WorkerType, Seq: r.Seq, Record: r}, func(Fault) (struct{}, error) {
		return struct{}{}, l.inner.Append(ctx, r)
	})
	return err
}

// Get passes on to the inner ledger. A stale get is store.ErrNotFound.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	return do(ctx, l, Call{Op: OpGet, WorkerType: workerType, Seq: seq}, func(f Fault) (store.Record, error) {
		r, err := l.inner.Get(ctx, workerType, seq)
		if err != nil || f.HideNewest <= 0 {
			return r, err
		}
		newest, _, err := l.inner.Tail(ctx, workerType, f.HideNewest)
		if err != nil {
			return store.Record{}, err
		}
		if slices.ContainsFunc(newest, func(n store.Record) bool { return n.Seq == seq }) {
			l.strike(KindStale)
			return store.Record{}, fmt.Errorf("faultstore: get %s: %w", store.Key(workerType, seq), store.ErrNotFound)
		}
		return r, nil
	})
}

// tailed is the result of Tail.
type tailed struct {
	records []store.Record
	stamp   store.Stamp
}

// Tail passes on to the inner ledger. A stale tail lacks the hidden records, and
// has older ones in their place; records that were trimmed don't come back.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	got, err := do(ctx, l, Call{Op: OpTail, WorkerType: workerType}, func(f Fault) (tailed, error) {
		hide := max(f.HideNewest, 0)
		records, stamp, err := l.inner.Tail(ctx, workerType, min(limit, math.MaxInt-hide)+hide)
		all := len(records)
		records = slices.DeleteFunc(records, func(r store.Record) bool {
			if r.Seq == 0 { // It stands for keys that can't be followed.
				return false
			}
			hide--
			return hide >= 0
		})
		if len(records) < all {
			l.strike(KindStale)
		}
		return tailed{records, l.shifted(stamp, f)}, err
	})
	return got.records, got.stamp, err
}

// Trim passes on to the inner ledger.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	return do(ctx, l, Call{Op: OpTrim, WorkerType: workerType, Seq: before}, func(Fault) (int, error) {
		return l.inner.Trim(ctx, workerType, before)
	})
}

// WorkerTypes passes on to the inner ledger.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return do(ctx, l, Call{Op: OpWorkerTypes}, func(Fault) ([]string, error) {
		return l.inner.WorkerTypes(ctx)
	})
}

// Now passes on to the inner ledger.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	return do(ctx, l, Call{Op: OpNow}, func(f Fault) (store.Stamp, error) {
		s, err := l.inner.Now(ctx)
		return l.shifted(s, f), err
	})
}

// shifted applies the fault and Ledger.Shift to a stamp.
func (l *Ledger) shifted(s store.Stamp, f Fault) store.Stamp {
	if s.IsZero() {
		return s
	}
	was := s
	l.mu.Lock()
	s.Time = s.Time.Add(l.shift + f.Shift).Truncate(max(s.Granularity, 1))
	if l.server != "" {
		s.Server = l.server
	}
	l.mu.Unlock()
	if f.Server != "" {
		s.Server = f.Server
	}
	if s != was {
		l.strike(KindStamp)
	}
	return s
}
