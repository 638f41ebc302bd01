package workerlease

import (
	"sync"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// arrival is an event on its way to a worker, with the events for the observer, and the error
// for Callbacks.Error, that come along with it.
type arrival struct {
	event    machine.Event
	observed []event.Event
	err      error
}

// inbox holds what has arrived for a worker. One goroutine at a time works on it, and ends
// when nothing is left: an idle worker has a timer, and no goroutine.
type inbox struct {
	mu       sync.Mutex
	arrivals []arrival
	again    bool   // everything is to be looked at again
	working  bool   // a goroutine takes in what arrives
	closed   bool   // the worker has ended, and takes in nothing more
	turn     uint64 // how often a goroutine began to work
	stop     func() // the timer's; nil: none is set
}

// post sends an event to the worker, unless it has ended. It never waits.
func (w *WorkerLease) post(a arrival) {
	w.client.activity.add(w, 1)
	w.deliver(a)
}

// deliver is post for what is counted as activity already.
func (w *WorkerLease) deliver(a arrival) {
	if w.accept(a) {
		go w.begin()
	}
}

// accept puts an arrival into the inbox, and reports whether the caller is to run the worker.
func (w *WorkerLease) accept(a arrival) bool {
	in := &w.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		w.client.activity.add(w, -1)
		return false
	}
	in.arrivals = append(in.arrivals, a)
	return w.beginLocked()
}

// nudge makes the worker look at everything again. It never waits.
func (w *WorkerLease) nudge() {
	in := &w.inbox
	in.mu.Lock()
	begins := !in.closed && !in.again
	if begins {
		in.again = true
		w.client.activity.add(w, 1)
		begins = w.beginLocked()
	}
	in.mu.Unlock()
	if begins {
		go w.begin()
	}
}

// due is called by the timer that was set at the end of a turn, on a goroutine of its own.
func (w *WorkerLease) due(turn uint64) {
	in := &w.inbox
	in.mu.Lock()
	begins := !in.closed && in.turn == turn && w.beginLocked()
	if begins {
		in.again = true
		w.client.activity.add(w, 1)
	}
	in.mu.Unlock()
	if begins {
		w.begin()
	}
}

// begin runs the worker on a goroutine that has just begun.
func (w *WorkerLease) begin() {
	reserveStack()
	w.run()
}

// beginLocked reports whether the caller is to run the worker: no goroutine does.
func (w *WorkerLease) beginLocked() bool {
	in := &w.inbox
	if in.working {
		return false
	}
	in.working = true
	in.turn++
	if in.stop != nil {
		in.stop()
		in.stop = nil
	}
	w.client.activity.park(w, time.Time{})
	return true
}

// next takes out what is to be taken in next. What has arrived comes before a mere look at
// everything, so that nothing is left to chance in a simulation. If there is nothing, it sets
// the timer, and the goroutine must end: another one may work from now on.
func (w *WorkerLease) next() (a arrival, ok bool) {
	in := &w.inbox
	in.mu.Lock()
	if a, ok = in.pop(); !ok {
		in.mu.Unlock()
		d := w.delay() // Only this goroutine may ask that, and not under the mutex: it takes the client's.
		in.mu.Lock()
		if a, ok = in.pop(); !ok {
			turn := in.turn
			// Set before the worker is seen to wait: a test that sees that may move a fake clock.
			in.stop = w.client.after(d, func() { w.due(turn) })
			w.client.activity.park(w, w.client.clock.Now().Add(d))
			w.rest(d)
			in.working = false
		}
	}
	in.mu.Unlock()
	if ok {
		w.beat()
		w.client.activity.add(w, -1)
	}
	return a, ok
}

// pop takes out the oldest arrival.
func (in *inbox) pop() (a arrival, ok bool) {
	switch {
	case len(in.arrivals) > 0:
		a = in.arrivals[0]
		in.arrivals[0] = arrival{}
		if in.arrivals = in.arrivals[1:]; len(in.arrivals) == 0 {
			in.arrivals = nil // An idle worker keeps nothing.
		}
		return a, true
	case in.again:
		in.again = false
		return arrival{event: machine.Wake{}}, true
	}
	return arrival{}, false
}

// close drops what has arrived. From then on nothing is taken in.
func (in *inbox) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed, in.arrivals = true, nil
}
