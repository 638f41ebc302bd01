package workerlease_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// hooked is a ledger around whose operations a test does things. What is nil does nothing.
type hooked struct {
	store.Ledger
	before       func() error // before each operation, which fails with its error
	beforeAppend func(store.Record)
	afterAppend  func(store.Record)
	sent         func(*store.Record)                  // changes what is appended
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
	if h.sent != nil {
		h.sent(&r)
	}
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

// sending lets a ledger get records that were changed on their way.
func sending(change func(*store.Record)) around {
	return func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
		return &hooked{Ledger: l, sent: change}, o
	}
}

// struck is a ledger with a script of faults.
func struck(t *testing.T, inner store.Ledger, plan func(faultstore.Call) faultstore.Fault) *faultstore.Ledger {
	t.Helper()
	l := faultstore.New(inner, faultstore.Options{Plan: plan})
	t.Cleanup(func() {
		must(t, l.Close(context.Background()))
	})
	return l
}

// faulty is a ledger in memory with a script of faults.
func faulty(t *testing.T, plan func(faultstore.Call) faultstore.Fault) *faultstore.Ledger {
	t.Helper()
	return struck(t, memory.New(memory.Options{}), plan)
}

// cut is a ledger in memory, and a connection to it that can be cut.
func cut(t *testing.T) (inner *memory.Ledger, link *faultstore.Ledger) {
	t.Helper()
	inner = memory.New(memory.Options{})
	return inner, struck(t, inner.Handle(), nil)
}

// during strikes calls in a stretch of time: all, or those of some operations.
func during(from, to time.Duration, f faultstore.Fault, ops ...faultstore.Op) func(faultstore.Call) faultstore.Fault {
	return when(func(c faultstore.Call) bool {
		now := since(c.At)
		return now >= from && now < to && (len(ops) == 0 || slices.Contains(ops, c.Op))
	}, f)
}

// ever is longer than any test.
const ever = time.Duration(math.MaxInt64)

func eachCall(f faultstore.Fault, ops ...faultstore.Op) func(faultstore.Call) faultstore.Fault {
	return during(0, ever, f, ops...)
}

// stepped is a ledger whose clock is off by so much in a stretch of time.
func stepped(l store.Ledger, from, to, by time.Duration) *hooked {
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) {
		if d := time.Since(t0); d > from && d < to {
			s.Time = s.Time.Add(by)
		}
	}}
}

// when strikes the calls that it is true of.
func when(is func(faultstore.Call) bool, f faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	return func(c faultstore.Call) faultstore.Fault {
		if is(c) {
			return f
		}
		return faultstore.Fault{}
	}
}

// once strikes the n-th call of an operation.
func once(op faultstore.Op, n int64, f faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	return when(func(c faultstore.Call) bool { return c.Op == op && c.N == n }, f)
}
