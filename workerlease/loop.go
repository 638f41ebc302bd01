package workerlease

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// arrival is an event on its way to the worker's goroutine, with the events for the
// observer, and the error for Callbacks.Error, that come along with it.
type arrival struct {
	event    machine.Event
	observed []Event
	err      error
}

// run is the worker's goroutine, and the only place that acts: it gives events
// to the machine, does what the machine says, and waits. It decides nothing.
func (w *WorkerLease) run() {
	defer w.finish()
	a := arrival{event: machine.Wake{}}
	for {
		for _, e := range a.observed {
			w.emit(e)
		}
		w.report(a.err)
		if w.ops.Err() != nil && !w.state.GivenUp {
			// What was cut short by giving up may come before the event that says so.
			w.step(machine.GiveUp{})
		}
		w.noteReply(a.event)
		w.step(a.event)
		if failed := w.stopFailed.Swap(nil); failed != nil {
			w.emit(*failed)
			w.report(failed.Err)
		}
		if w.state.Bid.Stage == machine.Halted {
			return
		}
		a = w.wait()
	}
}

func (w *WorkerLease) finish() {
	w.cancelOps()
	w.unhook()
	w.client.activity.leave(w)
	close(w.done)
}

// step takes in one event, and what follows from it at once.
func (w *WorkerLease) step(e machine.Event) {
	for e != nil {
		moment := w.client.moment(int(w.settled.Load()))
		if h := w.active.Load(); h != nil {
			moment.Lapsed = h.lapsed()
		}
		var actions []machine.Action
		w.state, actions = w.machine.Step(w.state, moment, e)
		w.settled.Store(int64(w.state.Clock.Settled))
		w.publish()
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

// wait waits for the next event. Every wait is bounded by a timer, and whatever
// ends it, the machine looks at everything again. What has arrived comes before
// mere wake-ups, so that nothing is left to chance in a simulation.
func (w *WorkerLease) wait() arrival {
	c := w.client
	select {
	case a := <-w.events:
		c.activity.add(w, -1)
		return a
	default:
	}
	d := w.delay()
	// Armed first: a test that sees the worker wait may move a fake clock.
	timer := c.clock.Timer(d)
	defer timer.Stop()
	c.activity.park(w, c.clock.Now().Add(d))
	select {
	case a := <-w.events:
		c.activity.park(w, time.Time{})
		c.activity.add(w, -1)
		return a
	case <-w.wake:
		c.activity.park(w, time.Time{})
		c.activity.add(w, -1)
	case <-timer.C:
		c.activity.park(w, time.Time{})
	}
	return arrival{event: machine.Wake{}}
}

// delay is how long to wait at most.
func (w *WorkerLease) delay() time.Duration {
	d := 24 * time.Hour
	if w.client.boot {
		d = recheckIdle
	}
	now, local := w.now(), w.client.local()
	for _, wait := range w.machine.Waits(w.state) {
		switch {
		case wait.Time.IsZero():
			d = min(d, wait.Local-local)
		case now.Known():
			d = min(d, now.Until(wait.Time, wait.Edge))
		}
	}
	return w.machine.Rules.Wait(d)
}

// post sends an event to the worker's goroutine, unless that has ended.
func (w *WorkerLease) post(a arrival) {
	w.client.activity.add(w, 1)
	w.deliver(a)
}

// order sends an event without waiting for the worker's goroutine, which may be
// busy with an observer.
func (w *WorkerLease) order(e machine.Event) {
	w.client.activity.add(w, 1)
	go w.deliver(arrival{event: e})
}

// deliver is post for what is counted as activity already.
func (w *WorkerLease) deliver(a arrival) {
	select {
	case w.events <- a:
	case <-w.done:
		w.client.activity.add(w, -1)
	}
}

// perform does what the machine says. Some actions have a result at once.
func (w *WorkerLease) perform(a machine.Action) machine.Event {
	ledger, workerType := w.client.ledger, w.options.WorkerType
	switch a := a.(type) {
	case machine.Sample:
		w.operate(machine.Sampling, func(ctx context.Context) arrival {
			sent := w.client.local()
			observed, err := w.sample(ctx)
			return arrival{event: machine.Sampled{Took: w.client.local() - sent, Err: err}, observed: observed}
		})
	case machine.ReadHead:
		w.operate(machine.ReadingHead, func(ctx context.Context) arrival {
			sent := w.client.local()
			records, stamp, err := ledger.Tail(ctx, workerType, a.Limit)
			read := machine.HeadRead{Records: records, Took: w.client.local() - sent, Err: err}
			if err != nil || stamp.IsZero() {
				return arrival{event: read}
			}
			observed, odd := w.sampled(stamp, sent)
			return arrival{event: read, observed: observed, err: odd}
		})
	case machine.ReadRecord:
		w.operate(machine.ReadingRecord, func(ctx context.Context) arrival {
			sent := w.client.local()
			r, err := ledger.Get(ctx, workerType, a.Seq)
			return arrival{event: machine.RecordRead{Seq: a.Seq, Record: r, Took: w.client.local() - sent, Err: err}}
		})
	case machine.Append:
		began := w.client.local()
		w.operate(machine.Appending, func(ctx context.Context) arrival {
			err := ledger.Append(ctx, a.Record)
			return arrival{event: machine.Appended{Seq: a.Record.Seq, Err: err, Took: w.client.local() - began}}
		})
	case machine.Trim:
		w.operate(machine.Trimming, func(ctx context.Context) arrival {
			n, err := ledger.Trim(ctx, workerType, a.Before)
			return arrival{event: machine.Trimmed{Count: n, Err: err}}
		})
	case machine.Sight:
		w.operate(machine.Sighting, func(ctx context.Context) arrival {
			since, err := w.sight(ctx, a)
			return arrival{event: machine.Sighted{Since: since, Err: err}}
		})
	case machine.Allocate:
		return w.allocate(a.Term)
	case machine.Extend:
		w.active.Load().extend(a.Term)
		w.publish()
	case machine.CallAgain:
		w.active.Load().again <- struct{}{}
	case machine.Expire:
		w.expire(a.Why)
	case machine.Observe:
		w.observe(a.Record, a.Own)
	case machine.Tell:
		w.note(a.Note)
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
	w.client.activity.add(w, 1)
	ctx := &watched{Context: h.ctx, waiting: func() { w.client.activity.add(w, -1) }}
	go func() {
		defer ctx.once.Do(ctx.waiting)
		defer close(h.returned)
		inside := h.lapsed() == 0 && (!w.machine.Rules.Look(machine.AtStart) || h.inside())
		begins <- inside
		if !inside {
			return
		}
		allocated := func() {
			close(h.began)
			w.callbacks.LeaseAllocated(ctx, h.lease())
		}
		if err := guarded("LeaseAllocated", allocated); err != nil {
			w.post(arrival{event: machine.Panicked{}, observed: w.panicked(h, err), err: err})
		}
	}()
	if !<-begins {
		h.end(machine.WindowEnded)
		return machine.Skipped{}
	}
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
			w.deliver(arrival{event: machine.Returned{}, observed: w.panicked(h, err), err: err})
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
	w.mu.Lock()
	w.status.LastError = err
	w.mu.Unlock()
	if w.callbacks.Error != nil {
		w.callbacks.Error(err)
	}
}
