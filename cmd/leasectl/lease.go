package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// preflight bounds how long run looks for what can't get better by waiting, and
// firstLook how long it is silent about a store that doesn't answer. A store that
// is down doesn't keep it from beginning.
const (
	preflight = 5 * time.Second
	firstLook = 2 * time.Second
)

// askLedger asks a ledger what a worker will ask, and tells of the first failure.
// It returns an error only if that can't get better by waiting.
func askLedger(ctx context.Context, l store.Ledger, tell func(error)) error {
	ask := func(limit time.Duration) error {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := l.Now(limited)
		if err == nil {
			_, err = l.WorkerTypes(limited)
		}
		return err
	}
	err := ask(firstLook)
	if err != nil && !advice.Lasting(err) && ctx.Err() == nil {
		tell(err)
		err = ask(preflight - firstLook)
	}
	if advice.Lasting(err) {
		return err
	}
	return nil
}

// stopTime is how long stopping may take on top of the command's grace: reading
// and appending to the ledger.
const stopTime = 10 * time.Second

// lease takes part in leasing until ctx ends.
func (a *app) lease(ctx context.Context, t storeuri.Target, ledger store.Ledger, o workerlease.Options, j journal, work *job) error {
	out, err := fileOf(a.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	errs, err := fileOf(a.stderr)
	if err != nil {
		return err
	}
	defer errs.close()
	work.stdout, work.stderr = out.file, errs.file
	if in, ok := a.stdin.(*os.File); ok && work.urgent == a.signals.Urgent {
		work.stdin = in
	}
	work.news, work.schedule = make(chan workerlease.Lease, 1), o.Schedule
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	events := witness{journal: j, extended: work.extended}
	client := workerlease.NewClient(readsUntil{ledger, stopping}, workerlease.ClientOptions{Observer: events})
	worker, err := work.begin(context.WithoutCancel(ctx), client, o)
	if err != nil {
		return exit.BadUsage("", err)
	}
	o.InstanceID = worker.Status().InstanceID
	j.began(o)
	checked := make(chan error, 1)
	go func() {
		of := workerlease.Worker{WorkerType: o.WorkerType, InstanceID: o.InstanceID}
		tell := func(err error) { j.Observe(workerlease.StoreFailed{Worker: of, Operation: "check", Err: err}) }
		if err := askLedger(ctx, ledger, tell); err != nil {
			checked <- err
		}
		if text := storeuri.Warning(ledger); text != "" {
			j.say(zap.WarnLevel, text)
		}
	}()
	var unfit error
	select {
	case <-ctx.Done():
	case <-work.urgent:
	case unfit = <-checked:
	}
	if unfit == nil {
		j.stopping(context.Cause(ctx))
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.longestGrace()+stopTime)
	defer cancel()
	if !j.reached() {
		stop()
	}
	if err := worker.StopLeasing(limit); err != nil {
		if o.Job != nil {
			err = fmt.Errorf("%w, and what was done may not be recorded", err)
		}
		return errors.Join(advice.ForStore(t, unfit), fmt.Errorf("%w; it ends by itself", err))
	}
	if unfit != nil {
		return advice.ForStore(t, unfit)
	}
	if cost := charges.Text(worker.Status().Charges); cost != "" {
		j.say(zap.InfoLevel, "leasing cost "+cost)
	}
	j.stopped()
	return nil
}

// begin begins to run the command: once for each slot, or whenever the lease is held.
func (j *job) begin(ctx context.Context, client *workerlease.Client, o workerlease.Options) (worker *workerlease.WorkerLease, err error) {
	began := make(chan struct{})
	defer close(began)
	j.storeTime = func() time.Time {
		<-began
		s := worker.Status()
		return s.StoreTime.Add(-s.Uncertainty)
	}
	if o.Job != nil {
		return client.StartTask(ctx, o, j.task)
	}
	return client.StartLeasing(ctx, o, workerlease.Callbacks{LeaseAllocated: j.run})
}

// readsUntil is a ledger whose reading is broken off when a context ends, so that
// stopping doesn't wait for a store that is down. Reads that begin later are left
// alone: they are what a release needs. Appends are, too: what came of one that
// was broken off would have to be read back.
type readsUntil struct {
	store.Ledger

	end context.Context
}

// until is a context for one read.
func (r readsUntil) until(ctx context.Context) (context.Context, func()) {
	if r.end.Err() != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.end, cancel)
	return ctx, func() { stop(); cancel() }
}

func (r readsUntil) Now(ctx context.Context) (store.Stamp, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Now(ctx)
}

func (r readsUntil) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Get(ctx, workerType, seq)
}

func (r readsUntil) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Tail(ctx, workerType, limit)
}
