// Package around does something around each read of a ledger, and each change of its roster.
package around

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// Ledger is a ledger that calls Do before each read, and each change of the roster, with the name of the operation: it
// goes on with the context that Do returns, and calls the function when it has ended. Appends, trims and hints are the
// ledger's own.
type Ledger struct {
	store.Ledger

	Do func(ctx context.Context, operation string) (context.Context, func())
}

// Unwrap returns the ledger itself.
func (l Ledger) Unwrap() store.Ledger { return l.Ledger }

// Tail reads the newest records.
func (l Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	ctx, done := l.Do(ctx, "tail")
	defer done()
	return l.Ledger.Tail(ctx, workerType, limit)
}

// Now reads the store's clock.
func (l Ledger) Now(ctx context.Context) (store.Stamp, error) {
	ctx, done := l.Do(ctx, "now")
	defer done()
	return l.Ledger.Now(ctx)
}

// WorkerTypes lists the worker types.
func (l Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	ctx, done := l.Do(ctx, "workerTypes")
	defer done()
	return l.Ledger.WorkerTypes(ctx)
}

// Get reads one record.
func (l Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	ctx, done := l.Do(ctx, "get")
	defer done()
	return l.Ledger.Get(ctx, workerType, seq)
}

// Page reads the oldest records above a Seq. A ledger without pages is read key by key.
func (l Ledger) Page(ctx context.Context, workerType string, after int64, limit int) (page []store.Record, err error) {
	if pager, ok := store.As[store.Pager](l.Ledger); ok {
		ctx, done := l.Do(ctx, "page")
		defer done()
		return pager.Page(ctx, workerType, after, limit)
	}
	newest, _, err := l.Tail(ctx, workerType, 1)
	for seq := after + 1; err == nil && len(newest) > 0 && seq <= newest[0].Seq && len(page) < limit; seq++ {
		var r store.Record
		switch r, err = l.Get(ctx, workerType, seq); {
		case err == nil:
			page = append(page, r)
		case errors.Is(err, store.ErrNotFound):
			err = nil
		}
	}
	return page, err
}

// roster does something with that of the ledger, if it keeps one. Otherwise the error matches errors.ErrUnsupported.
func (l Ledger) roster(ctx context.Context, operation string, do func(ctx context.Context, r store.Roster) error) error {
	r, ok := store.As[store.Roster](l.Ledger)
	if !ok {
		return fmt.Errorf("%s: the ledger keeps no roster: %w", operation, errors.ErrUnsupported)
	}
	ctx, done := l.Do(ctx, operation)
	defer done()
	return do(ctx, r)
}

// Presences lists the presences of a worker type, or of all.
func (l Ledger) Presences(ctx context.Context, workerType string) (all []store.Presence, err error) {
	err = l.roster(ctx, "presences", func(ctx context.Context, r store.Roster) error {
		all, err = r.Presences(ctx, workerType)
		return err
	})
	return all, err
}

// Attend puts presences into the roster.
func (l Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	return l.roster(ctx, "attend", func(ctx context.Context, r store.Roster) error { return r.Attend(ctx, presences) })
}

// Leave takes presences out of the roster.
func (l Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	return l.roster(ctx, "leave", func(ctx context.Context, r store.Roster) error { return r.Leave(ctx, workerType, ids) })
}
