//go:build linux

package main

import (
	"context"
	"path/filepath"
	"time"

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
			WorkerType: n.lease, InstanceID: n.id, Continuous: true, FailoverWithin: n.bound, JoinMidSlot: true,
		}, workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) { n.began() }})
		if err != nil {
			return err
		}
		<-ctx.Done()
		return w.StopLeasing(context.Background())
	})
}

// slotleaseJob is a job that is done once in each slot.
type slotleaseJob struct{ slotlease }

func (slotleaseJob) name() string { return "slotlease-job" }

func (slotleaseJob) work(ctx context.Context, n node) error {
	return withLedger(ctx, n, func(ledger store.Ledger) error {
		return workerlease.Run(ctx, ledger, workerlease.Options{
			WorkerType: n.lease, InstanceID: n.id, LeaseInterval: n.bound, Job: &workerlease.Job{},
		}, func(context.Context, workerlease.Lease) error {
			n.began()
			time.Sleep(jobTakes)
			return nil
		})
	})
}

func withLedger(ctx context.Context, n node, f func(store.Ledger) error) error {
	l, err := sqlite.Open(ctx, sqlite.Options{Path: n.address})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(context.Background()) }()
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
