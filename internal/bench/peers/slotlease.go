//go:build linux

package main

import (
	"context"
	"path/filepath"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

// slotlease on SQLite: a lease that goes on from slot to slot, in parts of the bound.
type slotlease struct{}

func (slotlease) name() string { return "slotlease" }

func (slotlease) serve(_ context.Context, dir string) (*service, error) {
	return &service{address: filepath.Join(dir, "leases.db"), stop: func() {}}, nil
}

func (slotlease) work(ctx context.Context, n node) error {
	return withLedger(ctx, n, func(ledger store.Ledger) error {
		w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(context.WithoutCancel(ctx), workerlease.Options{
			WorkerType: n.lease, InstanceID: n.id, Continuous: true, FailoverWithin: n.bound,
		}, workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) { n.began() }})
		if err != nil {
			return err
		}
		<-ctx.Done()
		return w.StopLeasing(context.Background())
	})
}

func withLedger(ctx context.Context, n node, f func(store.Ledger) error) error {
	l, err := sqlite.Open(ctx, sqlite.Options{Path: n.address})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(context.Background()) }()
	if err := l.Init(ctx); err != nil {
		return err
	}
	return f(counting{l, n.counted})
}

// counting counts the operations of a ledger.
type counting struct {
	*sqlite.Ledger
	counted func()
}

func (c counting) Now(ctx context.Context) (store.Stamp, error) {
	c.counted()
	return c.Ledger.Now(ctx)
}

func (c counting) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	c.counted()
	return c.Ledger.Tail(ctx, workerType, limit)
}

func (c counting) Append(ctx context.Context, r store.Record) error {
	c.counted()
	return c.Ledger.Append(ctx, r)
}
