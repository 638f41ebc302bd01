package faultstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// through passes operations on to an inner ledger, each of them by way of around.
type through struct {
	inner store.Ledger
	// around calls effect, or doesn't, and returns what the caller gets. The result is lost with an error.
	around func(ctx context.Context, o operation, effect func(Fault) error) error
	strike func(FaultKind)
	shift  func(store.Stamp, Fault) store.Stamp
}

// operation is a call with its size: the limit of a tail, or the number of presences.
type operation struct {
	Call
	size int64
}

var _ interface {
	store.Ledger
	store.Follower
	store.Pager
	store.Roster
	store.Watcher
} = (*through)(nil)

func pass[T any](ctx context.Context, t *through, o operation, effect func(f Fault) (T, error)) (T, error) {
	var result, none T
	err := t.around(ctx, o, func(f Fault) (err error) {
		result, err = effect(f)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// able is the inner ledger as one that can do more. The error matches errors.ErrUnsupported if it can't.
func able[T any](t *through, what string) (T, error) {
	x, ok := store.As[T](t.inner)
	if !ok {
		return x, fmt.Errorf("faultstore: %s: %w", what, errors.ErrUnsupported)
	}
	return x, nil
}

// Init passes on to the inner ledger.
func (t *through) Init(ctx context.Context) error {
	return t.around(ctx, operation{Call: Call{Op: OpInit}}, func(Fault) error { return t.inner.Init(ctx) })
}

// Append passes on to the inner ledger. An invalid record meets no fault and isn't counted: it is refused with
// store.ErrInvalid.
func (t *through) Append(ctx context.Context, r store.Record) error {
	if r.Check() != nil {
		return t.inner.Append(ctx, r)
	}
	return t.around(ctx, operation{Call: Call{Op: OpAppend, WorkerType: r.WorkerType, Seq: r.Seq, Record: r}}, func(Fault) error {
		return t.inner.Append(ctx, r)
	})
}

// AppendAfter is an append, OpAppend, and meets the same faults. The error matches errors.ErrUnsupported if the inner
// ledger is no store.Follower.
func (t *through) AppendAfter(ctx context.Context, r, prev store.Record) error {
	f, err := able[store.Follower](t, "append after a record")
	if err != nil {
		return err
	}
	if r.Check() != nil || store.CheckAfter(r, prev) != nil {
		return f.AppendAfter(ctx, r, prev)
	}
	return t.around(ctx, operation{Call: Call{Op: OpAppend, WorkerType: r.WorkerType, Seq: r.Seq, Record: r, Prev: prev}}, func(Fault) error {
		return f.AppendAfter(ctx, r, prev)
	})
}

// Get passes on to the inner ledger. A stale get is store.ErrNotFound.
func (t *through) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	return pass(ctx, t, operation{Call: Call{Op: OpGet, WorkerType: workerType, Seq: seq}}, func(f Fault) (store.Record, error) {
		r, err := t.inner.Get(ctx, workerType, seq)
		if err != nil {
			return r, err
		}
		shown, err := t.shown(ctx, workerType, []store.Record{r}, f)
		if err == nil && len(shown) == 0 {
			err = fmt.Errorf("faultstore: get %s: %w", store.Key(workerType, seq), store.ErrNotFound)
		}
		return r, err
	})
}

// shown are the records that a fault doesn't hide.
func (t *through) shown(ctx context.Context, workerType string, records []store.Record, f Fault) ([]store.Record, error) {
	if f.HideNewest <= 0 {
		return records, nil
	}
	newest, _, err := t.inner.Tail(ctx, workerType, f.HideNewest)
	all := len(records)
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return slices.ContainsFunc(newest, func(n store.Record) bool { return n.Seq == r.Seq })
	})
	if len(records) < all {
		t.strike(KindStale)
	}
	return records, err
}

// tailed is the result of Tail.
type tailed struct {
	records []store.Record
	stamp   store.Stamp
}

// Tail passes on to the inner ledger. A stale tail lacks the hidden records, and
// has older ones in their place; records that were trimmed don't come back.
func (t *through) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	got, err := pass(ctx, t, operation{Call{Op: OpTail, WorkerType: workerType}, int64(limit)}, func(f Fault) (tailed, error) {
		hide := max(f.HideNewest, 0)
		records, stamp, err := t.inner.Tail(ctx, workerType, min(limit, math.MaxInt-hide)+hide)
		all := len(records)
		records = slices.DeleteFunc(records, func(r store.Record) bool {
			if r.Seq == 0 { // It stands for keys that can't be followed.
				return false
			}
			hide--
			return hide >= 0
		})
		if len(records) < all {
			t.strike(KindStale)
		}
		return tailed{records, t.shift(stamp, f)}, err
	})
	return got.records, got.stamp, err
}

// Page passes on to the inner ledger. A stale page lacks the hidden records. The error matches
// errors.ErrUnsupported if the inner ledger has no pages.
func (t *through) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	p, err := able[store.Pager](t, string(OpPage))
	if err != nil {
		return nil, err
	}
	return pass(ctx, t, operation{Call: Call{Op: OpPage, WorkerType: workerType, Seq: after}}, func(f Fault) ([]store.Record, error) {
		page, err := p.Page(ctx, workerType, after, limit)
		if err != nil {
			return page, err
		}
		return t.shown(ctx, workerType, page, f)
	})
}

// Trim passes on to the inner ledger.
func (t *through) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	return pass(ctx, t, operation{Call: Call{Op: OpTrim, WorkerType: workerType, Seq: before}}, func(Fault) (int, error) {
		return t.inner.Trim(ctx, workerType, before)
	})
}

// WorkerTypes passes on to the inner ledger.
func (t *through) WorkerTypes(ctx context.Context) ([]string, error) {
	return pass(ctx, t, operation{Call: Call{Op: OpWorkerTypes}}, func(Fault) ([]string, error) { return t.inner.WorkerTypes(ctx) })
}

// Now passes on to the inner ledger.
func (t *through) Now(ctx context.Context) (store.Stamp, error) {
	return pass(ctx, t, operation{Call: Call{Op: OpNow}}, func(f Fault) (store.Stamp, error) {
		s, err := t.inner.Now(ctx)
		return t.shift(s, f), err
	})
}

// Watch passes on the hints of the inner ledger: a hint is no operation. The error matches errors.ErrUnsupported if that
// gives none.
func (t *through) Watch(ctx context.Context, changed func(workerType string)) error {
	w, err := able[store.Watcher](t, "watch")
	if err != nil {
		return err
	}
	return w.Watch(ctx, changed)
}

// Attend passes on to the inner ledger. The error matches errors.ErrUnsupported if that keeps no roster. Invalid
// presences meet no fault, like invalid records.
func (t *through) Attend(ctx context.Context, presences []store.Presence) error {
	r, err := able[store.Roster](t, string(OpAttend))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(presences, func(p store.Presence) bool { return p.Check() != nil }) {
		return r.Attend(ctx, presences)
	}
	return t.around(ctx, operation{Call{Op: OpAttend, WorkerType: typeOf(presences)}, int64(len(presences))}, func(Fault) error {
		return r.Attend(ctx, presences)
	})
}

// Leave passes on to the inner ledger, as Attend does.
func (t *through) Leave(ctx context.Context, workerType string, ids []string) error {
	r, err := able[store.Roster](t, string(OpLeave))
	if err != nil {
		return err
	}
	return t.around(ctx, operation{Call{Op: OpLeave, WorkerType: workerType}, int64(len(ids))}, func(Fault) error {
		return r.Leave(ctx, workerType, ids)
	})
}

// Presences passes on to the inner ledger, as Attend does.
func (t *through) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	r, err := able[store.Roster](t, string(OpPresences))
	if err != nil {
		return nil, err
	}
	return pass(ctx, t, operation{Call: Call{Op: OpPresences, WorkerType: workerType}}, func(Fault) ([]store.Presence, error) {
		return r.Presences(ctx, workerType)
	})
}

// typeOf is the worker type of presences, or empty if they have several.
func typeOf(presences []store.Presence) string {
	if len(presences) == 0 || slices.ContainsFunc(presences, func(p store.Presence) bool { return p.WorkerType != presences[0].WorkerType }) {
		return ""
	}
	return presences[0].WorkerType
}

// Close closes the inner ledger. It is neither counted nor logged.
func (t *through) Close(ctx context.Context) error { return t.inner.Close(ctx) }

// Around is a store.Ledger whose operations, but for Close and Watch, are each carried out by a function.
type Around struct{ through }

// NewAround wraps a ledger. around calls do, or doesn't, and returns the error that the caller gets. Its Call has no
// Caller, N and At.
func NewAround(inner store.Ledger, around func(ctx context.Context, c Call, do func() error) error) *Around {
	return &Around{plain(inner, func(ctx context.Context, o operation, effect func(Fault) error) error {
		return around(ctx, o.Call, func() error { return effect(Fault{}) })
	})}
}

// plain is one in which nothing is stale or shifted.
func plain(inner store.Ledger, around func(ctx context.Context, o operation, effect func(Fault) error) error) through {
	return through{inner, around, func(FaultKind) {}, func(s store.Stamp, _ Fault) store.Stamp { return s }}
}
