package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
)

var (
	_ store.Roster = (*Ledger)(nil)
	_ store.Roster = (*Counter)(nil)
)

// Attend passes on to the inner ledger. The error matches errors.ErrUnsupported if that keeps no roster. Invalid
// presences meet no fault, like invalid records.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	r, err := rosterOf(l.inner, OpAttend)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(presences, func(p store.Presence) bool { return p.Check() != nil }) {
		return r.Attend(ctx, presences)
	}
	_, err = do(ctx, l, Call{Op: OpAttend, WorkerType: typeOf(presences)}, func(Fault) (struct{}, error) {
		return struct{}{}, r.Attend(ctx, presences)
	})
	return err
}

// Leave passes on to the inner ledger. The error matches errors.ErrUnsupported if that keeps no roster.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	r, err := rosterOf(l.inner, OpLeave)
	if err != nil {
		return err
	}
	_, err = do(ctx, l, Call{Op: OpLeave, WorkerType: workerType}, func(Fault) (struct{}, error) {
		return struct{}{}, r.Leave(ctx, workerType, ids)
	})
	return err
}

// Presences passes on to the inner ledger. The error matches errors.ErrUnsupported if that keeps no roster.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	r, err := rosterOf(l.inner, OpPresences)
	if err != nil {
		return nil, err
	}
	return do(ctx, l, Call{Op: OpPresences, WorkerType: workerType}, func(Fault) ([]store.Presence, error) {
		return r.Presences(ctx, workerType)
	})
}

// Attend passes on to the inner ledger. If that keeps no roster, it is neither counted nor logged, and the error matches
// errors.ErrUnsupported.
func (c *Counter) Attend(ctx context.Context, presences []store.Presence) (err error) {
	r, err := rosterOf(c.inner, OpAttend)
	if err != nil {
		return err
	}
	defer c.begin(OpAttend, typeOf(presences), int64(len(presences)))(&err)
	return r.Attend(ctx, presences)
}

// Leave passes on to the inner ledger, as Attend does.
func (c *Counter) Leave(ctx context.Context, workerType string, ids []string) (err error) {
	r, err := rosterOf(c.inner, OpLeave)
	if err != nil {
		return err
	}
	defer c.begin(OpLeave, workerType, int64(len(ids)))(&err)
	return r.Leave(ctx, workerType, ids)
}

// Presences passes on to the inner ledger, as Attend does.
func (c *Counter) Presences(ctx context.Context, workerType string) (presences []store.Presence, err error) {
	r, err := rosterOf(c.inner, OpPresences)
	if err != nil {
		return nil, err
	}
	defer c.begin(OpPresences, workerType, 0)(&err)
	return r.Presences(ctx, workerType)
}

func rosterOf(inner store.Ledger, op Op) (store.Roster, error) {
	r, ok := inner.(store.Roster)
	if !ok {
		return nil, fmt.Errorf("faultstore: %s: %w", op, errors.ErrUnsupported)
	}
	return r, nil
}

// typeOf is the worker type of presences, or empty if they have several.
func typeOf(presences []store.Presence) string {
	if len(presences) == 0 || slices.ContainsFunc(presences, func(p store.Presence) bool { return p.WorkerType != presences[0].WorkerType }) {
		return ""
	}
	return presences[0].WorkerType
}
