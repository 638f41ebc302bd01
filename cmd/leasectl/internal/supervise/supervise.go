// Package supervise runs a command in each slot that a worker holds.
//
// [Run] takes part in leasing. While it holds a lease, a [guard.Process] runs the
// command; its deadline follows the lease, so that neither the command nor any of its
// descendants outlives it.
package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// stopTime is how long stopping may take on top of the command's grace: reading
// and appending to the ledger.
const stopTime = 10 * time.Second

// Run takes part in leasing until ctx ends, or the store turns out to be unfit for it:
// to be refused or to deny access, also later, for some time, or not to be there. It also ends,
// without releasing the lease, if processes of the command can't be killed: that error has the
// code [exit.Survivors].
func Run(ctx context.Context, ledger store.Ledger, t workerlease.Timing, c Command) (unfit, err error) {
	all := NewJobs(ledger, Options{Roster: c.Roster, Log: c.Log})
	job := all.admitLocked(Wanted{Timing: t, Command: c}) // Nobody else knows of them.
	if err := all.launch(ctx, job); err != nil {
		return nil, err
	}
	watching, watched := context.WithCancel(ctx)
	defer watched()
	select {
	case <-ctx.Done():
	case <-c.Urgent:
	case unfit = <-all.Unfit(watching):
	case <-job.kept.known.Done():
	}
	return all.Stop(ctx, unfit)
}

// newJob prepares a command. Its over is to be called when the worker begins nothing on the ledger any more.
func newJob(w Wanted) *job {
	return &job{
		pacing: pacing{w.Timing, w.Grace}, Command: w.Command, same: w.Same, news: make(chan event.Lease, 1), kept: newKept(), begun: make(chan struct{}),
	}
}

// end stops leasing, and so the command, and says why: because the store is unfit, or for another reason. stop breaks
// off the reads that are under way. close is to be called after it.
func (j *job) end(ctx context.Context, unfit, why error, stop func()) error {
	why = cmp.Or(context.Cause(j.kept.known), why)
	atMost := j.longestGrace() + stopTime
	if unfit == nil { // Else nothing is drained.
		atMost += j.Options.DrainTimeout
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), atMost)
	defer cancel()
	switch {
	case unfit != nil:
		j.Log.Failing()
		go func() { _ = j.worker.StopNow(limit) }()
	case j.Options.DrainTimeout > 0 && j.worker.Status().Running:
		defer j.drain(limit, why)()
	default:
		j.Log.Stopping(why)
	}
	// A kept lease is not waited for, since its callback doesn't return.
	defer context.AfterFunc(j.kept.known, cancel)()
	if !j.Log.Reached() {
		stop()
	}
	err := j.worker.StopLeasing(limit)
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
		j.Log.Cost(j.worker.Status().Charges)
		j.Log.Stopped()
	}
	return nil
}

// drain says that the run under way may come to its end, and ends that when the time for it is over, or at a second signal. The
// function that it returns is called when the worker has stopped.
func (j *job) drain(limit context.Context, why error) (stopped func()) {
	over := make(chan struct{})
	go func() {
		if hurried := j.drained(why, over); hurried != nil {
			j.Log.Stopping(hurried)
			_ = j.worker.StopNow(limit)
		}
	}()
	return func() { close(over) }
}

// drained says that the run under way may come to its end, and waits until that is over, or returns why it is to end now.
func (j *job) drained(why error, over <-chan struct{}) (hurried error) {
	most := j.Options.DrainTimeout
	j.Log.Draining(why, most)
	select {
	case <-over:
		return nil
	case <-j.Hurry:
		return errors.New("a second signal")
	case <-time.After(most):
		return fmt.Errorf("--drain-timeout %s is over", display.Brief(most))
	}
}

// close ends what is left of a job that leases no more: output that is still passed on, and those who are still told of its
// runs. Either may take seconds.
func (j *job) close() {
	j.over()
	if j.Ended != nil {
		j.Ended()
	}
}

// begin starts the worker: it runs the command once for each slot, or whenever the
// lease is held.
func (j *job) begin(ctx context.Context, client *workerlease.Client) (*workerlease.WorkerLease, error) {
	if j.Options.Job != nil {
		return client.StartTask(ctx, j.Options, j.unlessBarred(j.task))
	}
	return client.StartTask(ctx, j.Options, j.unlessBarred(j.run))
}
