package workerlease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Task is the user's code in Run. It is called in a slot that the worker holds, on its own
// goroutine, one call at a time. Its context ends at the last safe moment of the lease, with
// a cause as in Callbacks.LeaseAllocated. The task must have stopped by then.
//
// Its outcome decides what follows:
//
//	           without a Job                with a Job
//	nil        the lease is kept to the     the slot is done, also if the
//	           end of the slot; with        context had ended: it isn't run
//	           Continuous, the task is      for it again
//	           called again in the next
//	error      the error is reported, and   the same; the slot is tried
//	           the rest of the slot is      again, by others first, up to
//	           released                     MaxAttempts
//	panic,     as an error                  as an error
//	Goexit
//	canceled   nothing                      the slot is not done; what is
//	                                        left of it is tried again
//
// A task that has called Lease.FailedWith, and returns nil, has failed, and keeps its lease. One that
// returns ErrGiveBack has not failed, and the rest of its slot is released as after an error.
//
// The ledger records the outcome of a job, and of a task that has failed: see store.Outcome. It has the beginning of
// the error's text, which must have no secrets, and an exit code if the error has a method ExitCode() int.
//
// Canceled means that the context had ended, and the task returned the context's error or
// cause. Goexit is runtime.Goexit, as in t.FailNow; in a callback of StartLeasing it counts
// as returning.
//
// With FailoverWithin, other workers take over what is released, or what a worker that died
// had. Without a Job, a worker whose task has failed takes it over itself if no other has by
// then: after a lead at least, after twice as long each further time in that slot, and at most an
// eighth of the slot. Without FailoverWithin, the next slot is the next chance.
type Task func(ctx context.Context, l Lease) error

// Run runs a task on its own client: see Client.Run. Warnings and errors, with the stack
// of a panic, are logged to slog.Default(), as by the package's StartLeasing.
func Run(ctx context.Context, ledger store.Ledger, o Options, task Task) error {
	return newDefaultClient(ledger).Run(ctx, o, task)
}

// Run runs a task in each slot that its worker holds, until ctx ends. It calls the task,
// ends the task's context in time, waits for it to return, and contends for the next slot.
// With Options.Continuous the task runs on from slot to slot. Errors of the task go to the
// Observer and the Logger, and don't end Run.
//
// With Options.Job the task is done at least once in each slot that a worker works in. It
// may run again if its worker dies before the slot is recorded as done, or records that so
// late that another has been granted the slot. Lease.Attempt counts the attempts.
//
// When ctx ends, Run ends the task's context, waits for the task however long it takes,
// releases the lease, and returns nil. If the store doesn't answer for 10 s then, the error
// wraps ErrNotReleased. For bad options, and for a store that can't be used, Run returns an error as StartLeasing does. It
// does so, too, if the store couldn't be reached at the start, and its first answer is that; and with store.ErrClosed when
// the ledger, or the pool or client of the application that it uses, has been closed.
func (c *Client) Run(ctx context.Context, o Options, task Task) error {
	// Stopping is Run's business: it may take as long as the task does.
	w, err := c.startTask(context.WithoutCancel(ctx), ctx, o, task)
	if err != nil {
		return err
	}
	awaiting, awaited := context.WithCancel(ctx)
	defer awaited()
	var unfit error
	select {
	case <-ctx.Done():
	case <-w.done:
		return nil
	case err := <-c.await(awaiting, w.options.WorkerType):
		unfit = fmt.Errorf("run %q: %w", w.options.WorkerType, err)
	case err := <-w.orphaned:
		if ctx.Err() == nil {
			unfit = fmt.Errorf("run %q: %w", w.options.WorkerType, err)
		}
	}
	limited, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		w.idle()
		cancel(w.unanswered())
	}()
	return cmp.Or(unfit, w.StopLeasing(limited))
}

// unanswered is why Run gives up the release.
func (w *WorkerLease) unanswered() error {
	w.mu.Lock()
	unreleased := w.unreleased
	w.mu.Unlock()
	if !unreleased && w.checking.Load() != nil {
		return fmt.Errorf("it did not return within %v", stopGrace)
	}
	if s := w.Status(); s.Failures > 0 {
		return fmt.Errorf("the store did not answer within %v: %w", stopGrace, s.LastError)
	}
	return fmt.Errorf("the store did not answer within %v", stopGrace)
}

// StartTask starts a worker that runs a task, on its own client: see Client.StartTask.
// Warnings and errors are logged to slog.Default(), as by the package's StartLeasing.
func StartTask(ctx context.Context, ledger store.Ledger, o Options, task Task) (*WorkerLease, error) {
	return newDefaultClient(ledger).StartTask(ctx, o, task)
}

// StartTask starts a worker that runs a task as Run does, and returns it, for Status, Holder
// and RunIfHeld. It stops as a worker of StartLeasing does: by StopLeasing, or within 10 s
// of the end of ctx.
func (c *Client) StartTask(ctx context.Context, o Options, task Task) (*WorkerLease, error) {
	return c.startTask(ctx, ctx, o, task)
}

// startTask is StartTask, whose check of the ledger ends with another context.
func (c *Client) startTask(ctx, until context.Context, o Options, task Task) (*WorkerLease, error) {
	r := &runner{task: task}
	l := launch{what: "run", until: until, prepare: func(w *WorkerLease) { r.w, w.task = w, task }}
	if task == nil {
		l.wrong.Missing("task", "it is required")
	}
	return c.launch(ctx, o, Callbacks{LeaseAllocated: r.run}, l)
}

// runner calls a task and reports its outcome to the worker.
type runner struct {
	w    *WorkerLease
	task Task
}

func (r *runner) run(ctx context.Context, l Lease) {
	for {
		r.call(ctx, l)
		if !r.w.options.Continuous {
			return
		}
		l.active.rests.Store(true)
		select {
		case <-l.active.again:
			l.active.rests.Store(false)
			l = l.active.lease()
		case <-ctx.Done():
			return
		}
	}
}

// call calls the task for one slot.
func (r *runner) call(ctx context.Context, l Lease) {
	w := r.w
	began := w.client.local()
	err := errors.New("the task has ended its goroutine")
	l.active.faltered.Store(false)
	// Deferred, since user code may do that.
	defer func() {
		took := w.client.local() - began
		if why := context.Cause(ctx); err == nil && w.options.Job != nil && tookTooLong(why) {
			err = why
		}
		a := w.outcome(ctx, l, err, max(took, 1))
		if err == nil && !l.active.faltered.Load() {
			a.observed = append(a.observed, event.TaskSucceeded{Worker: w.label(), Lease: l.plain(), Took: took, At: w.now().Mid()})
		}
		w.post(a)
	}()
	if panicked := guarded("task", func() { err = r.task(ctx, l) }); panicked != nil {
		err = panicked
	}
}

// outcome is what follows from a task's end.
func (w *WorkerLease) outcome(ctx context.Context, l Lease, err error, took time.Duration) arrival {
	once := w.options.Job != nil
	ended := ctx.Err() != nil
	work := l.work(err, took)
	late := machine.Worked{Claim: l.active.term.Load().Claim, Failed: err != nil, Work: work}
	switch {
	case err == nil && once:
		return arrival{event: machine.Finished{Done: true, Work: work}}
	case err == nil && w.options.Continuous && !ended:
		return arrival{event: machine.Rested{}}
	case errors.Is(err, ErrGiveBack) && !ended:
		return arrival{event: machine.Finished{GivesBack: true, Work: work}}
	case err == nil, ended && !once && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		return arrival{event: machine.Wake{}}
	}
	switch {
	case ended && once:
		work.Cause = w.cause(l, context.Cause(ctx))
		late.Work = work
	case errors.Is(err, ErrLeaseExpired): // It was told to end in time for the end that its lease had then.
		work.Cause = w.cause(l, err)
	}
	a := arrival{
		event:    machine.Finished{Work: work},
		observed: []event.Event{event.TaskFailed{Worker: w.label(), Lease: l.plain(), Err: err, Cause: work.Cause, GivenUp: w.givesUp(l, work.Cause)}},
		err:      &taskError{w.options.WorkerType, l.Slot, work.Cause, err},
	}
	if errors.Is(err, ErrPanicked) {
		a.observed = []event.Event{event.Panic{Worker: w.label(), Slot: l.Slot, Err: err}}
	}
	if ended {
		a.event = late
	}
	return a
}

// givesUp reports that no attempt follows one that has failed.
func (w *WorkerLease) givesUp(l Lease, cause store.Cause) bool {
	spared := w.machine.Rules.Spares(store.Outcome{Result: store.Failed, Cause: cause})
	return !spared && w.machine.LastAttempt(l.Attempt-l.active.term.Load().Spared)
}

// tookTooLong reports that the lease of a job ended since that took too long: then it has failed, however it ends.
func tookTooLong(cause error) bool {
	return errors.Is(cause, ErrTimedOut) || errors.Is(cause, ErrStalled)
}

// cause is why an attempt failed whose lease has ended: at the end of its slot or, if it would have gone on, before it should have.
func (w *WorkerLease) cause(l Lease, ended error) store.Cause {
	c := attemptCause(ended)
	if c == store.SlotEnded && w.endsEarly(l.active.lease()) {
		return store.LeaseLost
	}
	return c
}

// endsEarly reports that a lease that ends with its window would have gone on.
func (w *WorkerLease) endsEarly(l Lease) bool {
	goesOn := w.options.Job != nil && w.options.Job.Overrun == Finish
	return goesOn || l.Expiry.Before(l.Slot.End)
}

// idle waits until no user code has run for stopGrace, or the worker has ended.
func (w *WorkerLease) idle() {
	for h := w.active.Load(); ; {
		if s := w.serving.Load(); s != nil {
			s.idle()
		}
		if h != nil {
			<-h.returned
		}
		t := w.client.clock.Timer(stopGrace)
		select {
		case <-t.C:
		case <-w.done:
			t.Stop()
			return
		}
		now := w.active.Load()
		if now == h {
			return
		}
		h = now // It was on its way.
	}
}

// RunIfHeld calls f if this worker holds the lease now. It reports whether it did, and
// returns f's error. The context of f ends with ctx or at the last safe moment of the lease,
// with the cause of the one that ended. The lease is not released before f has returned.
//
// It may be called from any goroutine, and several times at once. f must not wait for
// StopLeasing. Without Options.Continuous no worker holds a lease for a moment around each
// boundary, so start nothing by the clock right there.
func (w *WorkerLease) RunIfHeld(ctx context.Context, f Task) (held bool, err error) {
	if w == nil {
		return false, nil
	}
	h := w.current()
	if h == nil || !h.enter() {
		return false, nil
	}
	defer h.inFlight.Done()
	under, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })()
	return true, f(under, h.lease())
}

// enter lets code that isn't a callback work under the lease, if that is valid. The
// caller calls inFlight.Done.
func (h *activeLease) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != 0 || !h.inside(h.w.reading()) {
		return false
	}
	select {
	case <-h.began:
	default:
		return false // LeaseAllocated comes first.
	}
	h.inFlight.Add(1)
	return true
}
