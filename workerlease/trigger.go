package workerlease

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// leastAgain is the least time between two tries at a trigger.
const leastAgain = time.Second

// serving is a run that an operator has asked for, from when a worker tries to claim it to when it has come to an end. A second worker
// claims it, which is no part of the roster, hears no hints, and whose observer gets what concerns the run alone.
type serving struct {
	*WorkerLease
	at   time.Time                  // of the trigger
	lost atomic.Pointer[NotClaimed] // why it can't be claimed; nil: it was, or may yet be
	done atomic.Bool                // the run is known to be done
	once sync.Once
}

// ends has it stop, since nothing is left to do for it, before its worker takes in anything else: in which order, is not left to
// chance. The worker that it serves for is to hear of that.
func (s *serving) ends() {
	s.heard()
	s.stopping.Do(func() { s.post(arrival{event: machine.Stop{}}) })
}

// heard notes that the worker it serves for is to hear of its end.
func (s *serving) heard() { s.once.Do(func() { s.client.activity.add(s.main, 1) }) }

// serve tries to claim the run of a trigger, runs the task, and has the worker know what came of that.
func (w *WorkerLease) serve(t machine.Trigger) {
	s := &serving{at: t.Order.At}
	r := &runner{task: w.task}
	sub := w.client.newWorker(w.base, w.options, Callbacks{LeaseAllocated: func(ctx context.Context, l Lease) {
		defer s.ends()
		r.run(ctx, l)
	}})
	sub.machine.Config = w.machine.Serving(t)
	sub.options.Group, sub.options.Continuous, sub.options.DrainTimeout = "", false, 0
	sub.main, sub.listen, r.w, s.WorkerLease = w, s.observe, sub, sub
	w.serving.Store(s)
	w.client.begin(sub, func() func() bool { return func() bool { return true } })
	go func() {
		<-sub.done
		s.heard()
		w.serving.Store(nil)
		w.deliver(arrival{event: s.outcome()})
	}()
}

// outcome is what follows from the end of a run for the worker it was run for.
func (s *serving) outcome() machine.Served {
	order := s.machine.Trigger.Order
	served := machine.Served{At: s.at, After: max(leastAgain, s.machine.MinRetry(order.Until.Sub(order.At)))}
	why := s.lost.Load()
	switch {
	case s.done.Load():
		served.Over = true
	case why == nil:
	case why.Why == AlreadyDone, why.Why == PassedOver, why.Why == UsedUp:
		served.Over = true
	case !why.Until.IsZero():
		served.After = max(leastAgain, why.Until.Sub(s.now().Mid()))
	}
	return served
}

// observe gets the events of the worker that claims the run. What it says of later slots, as it turns to them, says nothing of that.
func (s *serving) observe(e event.Event) {
	if _, done := e.(event.SlotDone); done {
		s.done.Store(true)
	}
	if why, lost := notClaimed(e); lost {
		if why.Slot.Start.Equal(s.at) {
			s.lost.CompareAndSwap(nil, &why)
		}
		s.ends()
	}
}

// tells reports that an event is of the run that was asked for, and not of how a worker comes to it.
func tells(e event.Event) bool {
	switch e.(type) {
	case event.Started, event.Lost, event.Missed, event.Skipped, event.Postponed, event.HolderChanged, event.ScheduleMismatch, event.WorkMismatch,
		event.BecameIneligible, event.BecameEligible, event.StoreWarning, event.ClockSample:
		return false
	}
	return true
}

// forward passes on to the run that is served that its worker stops.
func (w *WorkerLease) forward(e machine.Event) {
	s := w.serving.Load()
	if s == nil {
		return
	}
	switch e.(type) {
	case machine.Stop:
		s.stopping.Do(func() { s.post(arrival{event: e}) })
	case machine.GiveUp:
		s.givingUp.Do(func() {
			s.cancelOps()
			s.post(arrival{event: e})
		})
	}
}

// beside reports that the task still runs for a trigger, though the lease of that has ended: it doesn't run twice at once.
func (w *WorkerLease) beside() bool {
	s := w.serving.Load()
	if s == nil {
		return false
	}
	s.mu.Lock()
	running := s.progress.running
	s.mu.Unlock()
	h := s.active.Load()
	return running && h != nil && !h.valid()
}

// current is the lease that the worker's task works under: its own, or that of a run that was asked for.
func (w *WorkerLease) current() *activeLease {
	if s := w.serving.Load(); s != nil {
		return cmp.Or(s.active.Load(), w.active.Load())
	}
	return w.active.Load()
}
