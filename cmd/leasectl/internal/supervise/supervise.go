// Package supervise runs a command in each slot that a worker holds.
//
// [Run] takes part in leasing. While it holds a lease, a [guard.Process] runs the
// command; its deadline follows the lease, so that neither the command nor any of its
// descendants outlives it.
package supervise

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// stopTime is how long stopping may take on top of the command's grace: reading
// and appending to the ledger.
const stopTime = 10 * time.Second

// Run takes part in leasing until ctx ends, or the store turns out to be unfit for it:
// to be refused or to deny access, also later, for some time, or not to be there. It also ends,
// without releasing the lease, if processes of the command can't be killed: that error has the
// code [exit.Survivors].
func Run(ctx context.Context, ledger store.Ledger, t workerlease.Timing, c Command) (unfit, err error) {
	work, over, err := newJob(t, c)
	if err != nil {
		return nil, err
	}
	defer over()
	kept := work.kept

	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	refused := newRefusals()
	client := workerlease.NewClient(readsUntil{ledger, stopping}, workerlease.ClientOptions{Observer: observer{c.Log, work.extended, refused, c.Observer}, Roster: c.Roster})
	worker, err := work.begin(context.WithoutCancel(ctx), client)
	if err != nil {
		return nil, exit.BadUsage("", err)
	}
	c.Log.Began(t.Options)
	if c.Began != nil {
		c.Began(worker)
	}
	checked := work.check(ctx, ledger)
	watching, watched := context.WithCancel(ctx)
	defer watched()
	select {
	case <-ctx.Done():
	case <-c.Urgent:
	case unfit = <-checked:
	case unfit = <-refused.unfit(watching, ledger, t.Options.WorkerType):
	case <-kept.known.Done():
	}
	err = work.end(ctx, worker, unfit, stop)
	if s := worker.Status(); err != nil && unfit == nil && s.Failures > 0 && barred(s.LastError) {
		unfit = s.LastError // It is why stopping failed, and no log line says so.
	}
	return unfit, err
}

// newJob prepares a command. over is to be called when the worker begins nothing on the ledger any more.
func newJob(t workerlease.Timing, c Command) (j *job, over func(), err error) {
	kept := newKept()
	out, err := pipeTo(c.Stdout)
	if err != nil {
		return nil, nil, err
	}
	errs, err := pipeTo(c.Stderr)
	if err != nil {
		out.close(kept.known)
		return nil, nil, err
	}
	over = func() {
		errs.close(kept.known)
		out.close(kept.known)
		close(kept.over)
	}
	return &job{
		pacing: pacing{t, c.Grace}, Command: c, stdin: c.Stdin, stdout: out.file, stderr: errs.file,
		news: make(chan workerlease.Lease, 1), kept: kept,
	}, over, nil
}

// check looks whether the ledger is fit for leasing. An error comes only if it isn't.
func (j *job) check(ctx context.Context, ledger store.Ledger) <-chan error {
	unfit := make(chan error, 1)
	go func() {
		of := workerlease.Worker{WorkerType: j.Options.WorkerType, InstanceID: j.Options.InstanceID}
		report := func(err error) { j.Log.Observe(workerlease.StoreFailed{Worker: of, Operation: "check", Err: err}) }
		if err := askLedger(ctx, ledger, report); err != nil {
			unfit <- err
		}
		if _, reported := ledger.(store.Warner); reported {
			return // The worker does.
		}
		if text := storeuri.Warning(ledger); text != "" {
			j.Log.Warn(text)
		}
	}()
	return unfit
}

// end stops leasing, and so the command. stop breaks off the reads that are under way.
func (j *job) end(ctx context.Context, worker *workerlease.WorkerLease, unfit error, stop func()) error {
	if unfit != nil {
		j.Log.Failing()
	} else {
		j.Log.Stopping(cmp.Or(context.Cause(j.kept.known), context.Cause(ctx)))
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.longestGrace()+stopTime)
	defer cancel()
	// A kept lease is not waited for, since its callback doesn't return.
	defer context.AfterFunc(j.kept.known, cancel)()
	if !j.Log.Reached() {
		stop()
	}
	err := worker.StopLeasing(limit)
	if kept := j.kept.error(); kept != nil {
		return kept
	}
	if err != nil {
		if j.Options.Job != nil {
			err = fmt.Errorf("%w, and what was done may not be recorded", err)
		}
		return fmt.Errorf("%w; the lease ends by itself", err)
	}
	if unfit == nil {
		j.Log.Cost(worker.Status().Charges)
		j.Log.Stopped()
	}
	return nil
}

// begin starts the worker: it runs the command once for each slot, or whenever the
// lease is held.
func (j *job) begin(ctx context.Context, client *workerlease.Client) (worker *workerlease.WorkerLease, err error) {
	began := make(chan struct{})
	defer close(began)
	j.storeTime = func() time.Time {
		<-began
		s := worker.Status()
		return s.StoreTime.Add(-s.Uncertainty)
	}
	if j.Options.Job != nil {
		return client.StartTask(ctx, j.Options, j.task)
	}
	return client.StartLeasing(ctx, j.Options, workerlease.Callbacks{LeaseAllocated: j.run})
}
