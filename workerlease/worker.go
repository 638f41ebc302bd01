package workerlease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// WorkerLease is a worker. It is safe for concurrent use. While it
// waits it has a timer and no goroutine: its steps, its ledger operations and its callbacks
// run on goroutines that end with them. The zero WorkerLease, and nil, are a worker that has stopped.
type WorkerLease struct {
	client    *Client
	options   Options
	callbacks Callbacks
	machine   machine.Machine
	base      context.Context // the values of StartLeasing's context, without its end
	unhook    func() bool
	listen    func(event.Event) // besides the observer; may be nil
	begins    func() bool       // whether anybody waits for the lease that is about to begin; may be nil
	task      Task              // of Run and StartTask; else nil
	main      *WorkerLease      // for which it claims the run of a trigger; nil: for nobody

	inbox    inbox
	pulse    pulse
	done     chan struct{}
	orphaned chan error // has why the ledger will answer nothing any more, if it is closed
	stopping sync.Once
	hurrying sync.Once
	givingUp sync.Once
	gaveUp   atomic.Bool                        // leasing, so that each operation ends at once
	cancelOp atomic.Pointer[context.CancelFunc] // of the newest operation

	settled atomic.Int64 // the machine's settled epoch
	heeds   atomic.Bool  // a hint may matter

	attendee *attendee // its part in the roster; nil: it has none

	serving  atomic.Pointer[serving] // the run of a trigger; nil: there is none
	checking atomic.Pointer[check]   // the call of Options.Eligible that runs; nil: none does

	// Only of the goroutine that runs the worker: see inbox.
	state            machine.State
	uncertainSamples int           // how often in a row store time was too uncertain
	uncertainFrom    time.Duration // the local reading of the first of these
	warned           []string      // of which shortcomings of the store
	outage           outage
	downtime, upkeep downtime
	over             *downtime     // not reported yet
	took             time.Duration // by the newest operation

	stopFailed atomic.Pointer[event.StopFailed] // not reported yet

	active atomic.Pointer[activeLease] // the newest; set by the goroutine that runs the worker

	mu         sync.Mutex
	unreleased bool // there is a lease to release, or there may be
	obstacles  obstacles
	progress   progress
	terms      terms
}

func (c *Client) newWorker(ctx context.Context, o Options, cb Callbacks) *WorkerLease {
	w := &WorkerLease{
		client: c, options: o, callbacks: cb, machine: o.machine(c.rules),
		base: context.WithoutCancel(ctx),
		done: make(chan struct{}), orphaned: make(chan error, 1),
	}
	w.beat()
	w.state = c.start()
	w.settled.Store(int64(w.state.Clock.Settled))
	w.machine.Shortest, w.machine.Follows = slots.Shortest(o.Schedule), c.follower != nil
	return w
}

// started reports that the worker was started once.
func (w *WorkerLease) started() bool { return w != nil && w.client != nil }

// Client returns the client that the worker belongs to.
func (w *WorkerLease) Client() *Client {
	if w == nil {
		return nil
	}
	return w.client
}

// Done is closed when the worker has stopped: all callbacks have returned, and no goroutine
// of it is left.
func (w *WorkerLease) Done() <-chan struct{} {
	if !w.started() {
		return ended.Done()
	}
	return w.done
}

// ended is the context of what never began.
var ended = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrStopped)
	return ctx
}()

// now contains store time.
func (w *WorkerLease) now() timeline.Interval { return w.reading().now }

func (w *WorkerLease) reading() reading { return w.client.reading(int(w.settled.Load())) }

// StopLeasing stops the worker: it ends the lease's context, calls LeaseExpired, waits for
// all callbacks, and releases the rest of the lease. It may be called more than once and
// from several goroutines, but not from a callback, which it would wait for.
//
// While the store can't be reached, or throttles, it retries: the release up to the end of the slot, and
// the record that a slot is done up to the end of that slot, or for a minute if that is
// longer.
//
// With Options.DrainTimeout a run that is under way may first come to its end. StopNow cuts that short.
//
// If ctx ends first, the error wraps its cause, and ErrNotReleased if all callbacks have
// returned and there is, or may be, a lease to release. The worker then begins no more
// ledger operations, and ends when the callbacks have returned. An unreleased lease ends
// with its window.
func (w *WorkerLease) StopLeasing(ctx context.Context) error { return w.stop(ctx, nil) }

// StopNow is StopLeasing without Options.DrainTimeout, also for a worker that is told to stop already.
func (w *WorkerLease) StopNow(ctx context.Context) error {
	if w.started() {
		w.hurrying.Do(func() { w.post(arrival{event: machine.Stop{}}) })
	}
	return w.stop(ctx, nil)
}

// beginStop tells the worker to stop, at once or when its run has ended.
func (w *WorkerLease) beginStop() {
	stop := func() { w.hurrying.Do(func() { w.post(arrival{event: machine.Stop{}}) }) }
	if w.options.DrainTimeout == 0 {
		stop()
		return
	}
	w.post(arrival{event: machine.Drain{}})
	over := w.client.after(w.options.DrainTimeout, stop)
	go func() {
		<-w.done
		over()
	}()
}

// stop is StopLeasing. failed gets the error before the worker is told to give up, which
// may end it at once.
func (w *WorkerLease) stop(ctx context.Context, failed func(error)) error {
	if !w.started() {
		return nil
	}
	w.stopping.Do(w.beginStop)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-w.done:
		return nil
	default:
	}
	err := fmt.Errorf("stop leasing %q: %w: an operation on the ledger has not ended", w.options.WorkerType, context.Cause(ctx))
	w.mu.Lock()
	running, unreleased := w.progress.running, w.unreleased
	w.mu.Unlock()
	if s := w.serving.Load(); s != nil {
		s.mu.Lock()
		running, unreleased = running || s.progress.running, unreleased || s.unreleased
		s.mu.Unlock()
	}
	switch {
	case running:
		err = fmt.Errorf("stop leasing %q: %w: the callbacks have not returned", w.options.WorkerType, context.Cause(ctx))
	case unreleased:
		err = fmt.Errorf("stop leasing %q: %w: %w", w.options.WorkerType, ErrNotReleased, context.Cause(ctx))
	case w.checking.Load() != nil:
		err = fmt.Errorf("stop leasing %q: %w: Options.Eligible has not returned", w.options.WorkerType, context.Cause(ctx))
	}
	if failed != nil {
		failed(err)
	}
	w.givingUp.Do(func() {
		w.cancelOps()
		w.post(arrival{event: machine.GiveUp{}})
	})
	return err
}
