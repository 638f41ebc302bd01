package workerlease

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// run takes in what has arrived, until nothing is left. It is the only place that acts: it
// gives events to the machine, and does what the machine says. It decides nothing. One
// goroutine at a time runs it: see inbox.
func (w *WorkerLease) run() {
	for {
		a, ok := w.next()
		if !ok || !w.receive(a) {
			return
		}
	}
}

// receive takes in an arrival, and reports whether the worker goes on.
func (w *WorkerLease) receive(a arrival) (goes bool) {
	// Deferred, since an observer may end its goroutine, as FailNow of a test does. No other
	// one would ever run the worker, and whoever stops it would wait for ever.
	defer func() {
		if !goes {
			w.finish()
		}
	}()
	for _, e := range a.observed {
		w.emit(e)
	}
	w.report(a.err)
	if w.gaveUp.Load() && !w.state.GivenUp {
		// What was cut short by giving up may come before the event that says so.
		w.step(machine.GiveUp{})
	}
	w.noteReply(a.event)
	w.step(a.event)
	w.tellOver()
	if failed := w.stopFailed.Swap(nil); failed != nil {
		w.emit(*failed)
		w.report(failed.Err)
	}
	return w.state.Bid.Stage != machine.Halted
}

func (w *WorkerLease) finish() {
	w.inbox.close()
	w.cancelOps()
	w.unhook()
	w.client.unwatch(w)
	w.client.unattend(w)
	w.client.activity.leave(w)
	w.client.down.leave(&w.downtime)
	w.client.down.leave(&w.upkeep)
	w.retire()
	w.endCheck()
}

// step takes in one event, and what follows from it at once.
func (w *WorkerLease) step(e machine.Event) {
	for e != nil {
		moment := w.client.moment(int(w.settled.Load()))
		if h := w.active.Load(); h != nil {
			moment.Lapsed, moment.Progressed = h.lapsed(), time.Duration(h.progressed.Load())
		}
		w.forward(e)
		moment.Beside = w.beside()
		ran := w.state.Hold.Running
		actions := w.machine.Advance(&w.state, moment, e)
		w.settled.Store(int64(w.state.Clock.Settled))
		w.heeds.Store(w.machine.MayHeed(&w.state))
		w.publish(moment.Now.Latest)
		if w.main != nil && ran && !w.state.Hold.Running {
			w.main.post(arrival{event: machine.Wake{}}) // It may have waited for that.
		}
		if judged, ok := e.(machine.Judged); ok {
			w.count(func(p *progress) { p.ineligible = judged.Err }) // The newest reason is shown.
		}
		// Operations are begun first: an observer that is slow must not let time pass
		// between a decision and the append that follows from it.
		for _, a := range actions {
			if operates(a) {
				w.perform(a)
			}
		}
		e = nil
		for _, a := range actions {
			if operates(a) {
				continue
			}
			if next := w.perform(a); next != nil {
				e = next
			}
		}
	}
}

// delay is how long to wait at most.
func (w *WorkerLease) delay() time.Duration {
	d := 24 * time.Hour
	if w.client.boot {
		d = recheckIdle
	}
	r := w.reading()
	for _, wait := range w.machine.Waits(&w.state) {
		switch {
		case wait.Time.IsZero():
			d = min(d, wait.Local-r.local)
		case r.now.Known():
			d = min(d, r.now.Until(wait.Time, wait.Edge))
		}
	}
	return w.machine.Rules.Wait(d)
}

// perform does what the machine says. Some actions have a result at once.
func (w *WorkerLease) perform(a machine.Action) machine.Event {
	ledger, workerType := w.client.ledger, w.options.WorkerType
	switch a := a.(type) {
	case machine.Sample:
		w.operate(machine.Sampling, func(ctx context.Context, sent time.Duration) arrival {
			observed, err := w.sample(ctx, sent)
			return arrival{event: machine.Sampled{Took: w.client.local() - sent, Err: err}, observed: observed}
		})
	case machine.ReadHead:
		w.operate(machine.ReadingHead, func(ctx context.Context, sent time.Duration) arrival {
			records, stamp, err := ledger.Tail(ctx, workerType, a.Limit)
			read := machine.HeadRead{Records: records, Took: w.client.local() - sent, Err: err}
			if err != nil || stamp.IsZero() {
				return arrival{event: read}
			}
			observed, odd := w.sampled(stamp, sent)
			return arrival{event: read, observed: observed, err: odd}
		})
	case machine.ReadRecord:
		w.operate(machine.ReadingRecord, func(ctx context.Context, sent time.Duration) arrival {
			r, err := ledger.Get(ctx, workerType, a.Seq)
			return arrival{event: machine.RecordRead{Seq: a.Seq, Record: r, Took: w.client.local() - sent, Err: err}}
		})
	case machine.Append:
		w.operate(machine.Appending, func(ctx context.Context, sent time.Duration) arrival {
			err := w.client.append(ctx, a.Record, a.Prev)
			return arrival{event: machine.Appended{Seq: a.Record.Seq, Err: err, Took: w.client.local() - sent}}
		})
	case machine.Trim:
		w.operate(machine.Trimming, func(ctx context.Context, _ time.Duration) arrival {
			n, err := ledger.Trim(ctx, workerType, a.Before)
			return arrival{event: machine.Trimmed{Count: n, Err: err}}
		})
	case machine.Sight:
		w.operate(machine.Sighting, func(ctx context.Context, _ time.Duration) arrival {
			since, err := w.sight(ctx, a)
			return arrival{event: machine.Sighted{Since: since, Err: err}}
		})
	case machine.Allocate:
		return w.allocate(a.Term)
	case machine.Extend:
		w.active.Load().extend(a.Term)
		w.publish(w.now().Latest)
	case machine.Check:
		w.beginCheck()
	case machine.CallAgain:
		w.active.Load().again <- struct{}{}
	case machine.Expire:
		w.expire(a.Why)
	case machine.Observe:
		w.observe(a.Record, a.Own)
	case machine.Tell:
		w.note(a.Note)
	case machine.Serve:
		w.serve(a.Trigger)
	case machine.Halt:
	}
	return nil
}

// allocate starts the user's code, if store time is surely inside the window
// right before.
func (w *WorkerLease) allocate(t machine.Term) machine.Event {
	h := w.newActiveLease(t)
	w.active.Store(h)
	begins := make(chan bool)
	unwanted := false // ordered by begins
	w.client.activity.add(w, 1)
	ctx := &watched{Context: h.ctx, waiting: func() { w.client.activity.add(w, -1) }}
	go func() {
		defer ctx.once.Do(ctx.waiting)
		defer close(h.returned)
		inside := h.lapsed() == 0 && (!w.machine.Rules.Look(machine.AtStart) || h.inside(w.reading()))
		unwanted = inside && w.begins != nil && !w.begins()
		inside = inside && !unwanted
		begins <- inside
		if !inside {
			return
		}
		allocated := func() {
			// Counted where it becomes visible: who sees Holding sees it in Allocated.
			w.count(func(p *progress) { p.allocated++; close(h.began) })
			w.callbacks.LeaseAllocated(ctx, h.lease())
		}
		if err := guarded("LeaseAllocated", allocated); err != nil {
			w.post(arrival{event: machine.Panicked{Work: workOf(err, 0)}, observed: w.panicked(h, err), err: err})
		}
	}()
	if !<-begins {
		h.end(machine.WindowEnded)
		return machine.Skipped{Unwanted: unwanted}
	}
	w.client.leases.add(h)
	h.watch()
	return machine.Began{}
}

// expire ends the user's code: the context first, then LeaseExpired.
func (w *WorkerLease) expire(why machine.Reason) {
	h := w.active.Load()
	h.end(why)
	w.client.activity.add(w, 1)
	go func() {
		var err error
		// Deferred, since user code may end its goroutine.
		defer func() {
			<-h.returned
			h.waitForExtended()
			h.inFlight.Wait()
			observed := append(w.panicked(h, err), event.Returned{Worker: w.label(), Lease: h.lease().plain()})
			w.deliver(arrival{event: machine.Returned{}, observed: observed, err: err})
		}()
		<-h.began
		if w.callbacks.LeaseExpired != nil {
			err = guarded("LeaseExpired", func() { w.callbacks.LeaseExpired(h.lease(), reason(why)) })
		}
	}()
}

// report passes an error to Callbacks.Error and Status.
func (w *WorkerLease) report(err error) {
	if err == nil {
		return
	}
	if w.main != nil {
		w.main.post(arrival{event: machine.Wake{}, err: err}) // whose callback it is
		return
	}
	w.mu.Lock()
	w.progress.lastError = err
	w.mu.Unlock()
	if w.callbacks.Error != nil {
		w.outside(&inError, func() { w.callbacks.Error(err) })
	}
}
