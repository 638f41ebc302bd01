package workerlease_test

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/store"
)

// hooked is a ledger around whose operations a test does things. What is nil does nothing.
type hooked struct {
	store.Ledger
	before       func() error // before each operation, which fails with its error
	beforeAppend func(store.Record)
	afterAppend  func(store.Record)
	stamp        func(s *store.Stamp, sent time.Time) // changes what is read
	record       func(*store.Record)                  // changes what is read
}

func (h *hooked) begin() error {
	if h.before == nil {
		return nil
	}
	return h.before()
}

func (h *hooked) Append(ctx context.Context, r store.Record) error {
	if h.beforeAppend != nil {
		h.beforeAppend(r)
	}
	err := h.begin()
	if err == nil {
		err = h.Ledger.Append(ctx, r)
	}
	if h.afterAppend != nil {
		h.afterAppend(r)
	}
	return err
}

func (h *hooked) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := h.begin(); err != nil {
		return store.Record{}, err
	}
	r, err := h.Ledger.Get(ctx, workerType, seq)
	if h.record != nil {
		h.record(&r)
	}
	return r, err
}

func (h *hooked) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	sent := time.Now()
	if err := h.begin(); err != nil {
		return nil, store.Stamp{}, err
	}
	records, s, err := h.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		if h.record != nil {
			h.record(&records[i])
		}
	}
	if h.stamp != nil && !s.IsZero() {
		h.stamp(&s, sent)
	}
	return records, s, err
}

func (h *hooked) Now(ctx context.Context) (store.Stamp, error) {
	sent := time.Now()
	if err := h.begin(); err != nil {
		return store.Stamp{}, err
	}
	s, err := h.Ledger.Now(ctx)
	if h.stamp != nil && !s.IsZero() {
		h.stamp(&s, sent)
	}
	return s, err
}
