package workerlease

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Task is the user's code in Run. It is called in a slot that the worker holds; its
// context ends at the last safe moment of the lease, with a cause as that of
// Callbacks.LeaseAllocated, and the task must have stopped then.
//
// What its outcome does:
//
//	            while held (default)           OncePerSlot
//	nil         the lease is kept, and the     a done record closes the slot: nobody
//	            task not called again, to      runs the task for it any more; also if
//	            the end of the slot; with      the context had ended
//	            Continuous it is called
//	            again when the next begins
//	error       reported; what is left of      the same, but the slot is tried again,
//	            the slot is released; this     by somebody else first, MaxAttempts
//	            worker goes on with the next   times in all
//	panic,      as an error                    as an error
//	Goexit
//	canceled    an error after the end of      the same: the slot is not done; if
//	            the context: nothing           something is left of it, it is tried
//	                                           again
//
// Goexit is runtime.Goexit, as a call of t.FailNow in the task makes it. (In a callback
// of StartLeasing it counts as returning.)
//
// Others take over what was released, or what a worker that died had, if they have
// FailoverWithin; else the next slot is the next chance.
type Task func(ctx context.Context, l Lease) error

// Run runs a task on its own client: see Client.Run. Warnings and errors, with the stack
// of a panic, are logged to slog.Default(), as by the package's StartLeasing.
func Run(ctx context.Context, ledger store.Ledger, o Options, task Task) error {
	return newDefaultClient(ledger).Run(ctx, o, task)
}

// Run runs a task in each slot that a worker with these options holds: the simplest
// way to use this package. It calls the task, ends its context in time, waits for it
// to return, and contends for the next slot, until ctx ends. With
// Options.Continuous the task runs on from slot to slot.
//
// With Options.OncePerSlot the task is done at least once in a slot that anybody
// works in, and nobody is granted a slot behind its done record: a worker that dies
// between finishing the task and that record leaves it to be run again, and so may one
// whose record comes so late that another has been granted the slot before it. The
// task must bear that. Lease.Attempt tells how often it was begun.
//
// When ctx ends, Run ends the task's context, waits for the task however long it
// takes, releases the lease (for 10 s at most, if the store doesn't answer), and
// returns nil; or an error that says what it left behind. It returns at once for bad
// options, as StartLeasing does. Errors of the task are told to the Observer and the
// Logger, and shown in Status; Run goes on. Any number of Runs may share one Client.
// StartTask does the same in the background.
func (c *Client) Run(ctx context.Context, o Options, task Task) error {
	// Stopping is Run's business: it may take as long as the task does.
	w, err := c.StartTask(context.WithoutCancel(ctx), o, task)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-w.done:
		return nil
	}
	limited, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		w.idle()
		cancel(w.unanswered())
	}()
	return w.StopLeasing(limited)
}

// unanswered is why Run gives up the release.
func (w *WorkerLease) unanswered() error {
	if err := w.Status().LastError; err != nil {
		return fmt.Errorf("the store did not answer within %v: %w", stopGrace, err)
	}
	return fmt.Errorf("the store did not answer within %v", stopGrace)
}

// StartTask starts a worker that runs a task, on its own client: see Client.StartTask.
// Warnings and errors are logged to slog.Default(), as by the package's StartLeasing.
func StartTask(ctx context.Context, ledger store.Ledger, o Options, task Task) (*WorkerLease, error) {
	return newDefaultClient(ledger).StartTask(ctx, o, task)
}

// StartTask starts a worker that runs a task as Run does, and returns it: for its
// Status, Holder and the like. It is stopped as one of StartLeasing is, by StopLeasing
// or the end of ctx, which gives it 10 s.
func (c *Client) StartTask(ctx context.Context, o Options, task Task) (*WorkerLease, error) {
	r := &runner{task: task}
	l := launch{what: "run", prepare: func(w *WorkerLease) { r.w = w }}
	if task == nil {
		l.wrong.missing("task", "it is required")
	}
	return c.launch(ctx, o, Callbacks{LeaseAllocated: r.run}, l)
}

// runner calls a task and reports its outcome to the worker.
type runner struct {
	w    *WorkerLease
	task Task
}

func (r *runner) run(ctx context.Context, l Lease) {
	if late := l; !l.missed.IsZero() {
		late.Slot, late.Missed = l.missed, true
		returned := make(chan struct{})
		go func() { // It may end its goroutine.
			defer close(returned)
			r.call(ctx, late)
		}()
		<-returned
	}
	if ctx.Err() != nil && !l.missed.IsZero() {
		return
	}
	for {
		r.call(ctx, l)
		if !r.w.options.Continuous {
			return
		}
		select {
		case <-l.active.again:
			l = l.active.lease()
		case <-ctx.Done():
			return
		}
	}
}

// call calls the task for one slot.
func (r *runner) call(ctx context.Context, l Lease) {
	w := r.w
	err := errors.New("the task has ended its goroutine")
	// Deferred, since user code may do that.
	defer func() {
		a := w.outcome(ctx, l, err)
		if l.Missed {
			a.event = machine.Wake{} // Its slot was closed before, whatever comes of this.
		}
		w.post(a)
	}()
	if panicked := guarded("task", func() { err = r.task(ctx, l) }); panicked != nil {
		err = panicked
	}
}

// outcome is what follows from a task's end.
func (w *WorkerLease) outcome(ctx context.Context, l Lease, err error) arrival {
	once := w.options.Job != nil
	ended := ctx.Err() != nil
	switch {
	case err == nil && once:
		return arrival{event: machine.Finished{Done: true}}
	case err == nil && w.options.Continuous && !ended:
		return arrival{event: machine.Rested{}}
	case err == nil, ended && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		return arrival{event: machine.Wake{}}
	}
	a := arrival{
		event:    machine.Finished{},
		observed: []Event{TaskFailed{Worker: w.label(), Lease: l, Err: err}},
		err:      fmt.Errorf("%s: task in slot %v: %w", w.options.WorkerType, l.Slot, err),
	}
	if errors.Is(err, ErrPanicked) {
		a.observed = []Event{Panic{Worker: w.label(), Slot: l.Slot, Err: err}}
	}
	if ended {
		a.event = machine.Wake{}
	}
	return a
}

// idle waits until no user code has run for stopGrace, or the worker has ended.
func (w *WorkerLease) idle() {
	for h := w.active.Load(); ; {
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

// RunIfHeld calls f if this worker holds the lease now, and reports whether it did. The
// context ends with ctx or at the last safe moment of the lease, with the cause of
// whichever ended. The lease is not released before f has returned: to the worker it
// is user code, as the callbacks are. It may be called from any goroutine, but not
// wait for StopLeasing. Without Options.Continuous nobody holds a lease for a moment
// around each boundary: what is started by the same clock should not start there.
func (w *WorkerLease) RunIfHeld(ctx context.Context, f Task) (held bool, err error) {
	h := w.active.Load()
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
	if h.ended != 0 || !h.inside() {
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
