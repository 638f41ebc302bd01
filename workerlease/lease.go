package workerlease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Lease is the right to work for one window. It may be copied, and its methods are safe for
// concurrent use. The zero Lease is not valid.
type Lease struct {
	WorkerType string
	InstanceID string
	Group      string
	// Slot is the slot that was won; with Options.Continuous, the newest of them.
	Slot slots.Slot
	// Start and Expiry bound the window, in store time, as of when this value was made.
	// Work must stop before Expiry. Remaining says how long it may go on, with extensions.
	Start, Expiry time.Time
	// Token is the fencing token, higher than those of all earlier leases of the worker
	// type. Pass it along with each write to a resource that refuses a token lower than
	// the highest it has seen. Only that protects against a pause between the last check
	// and the write.
	Token int64
	// Attempt counts how often the slot was begun, including this time; 0 without
	// Options.Job.
	Attempt int
	// Missed says that the task is called late, for a slot that was not begun in time: by Job.CatchUp, where the window is
	// one of a later slot, or because a run that an operator had asked for went on into the slot.
	Missed bool
	// Triggered says that the task is called because an operator has asked for one more run. Slot is the time
	// in which that may begin.
	Triggered bool

	active *activeLease
}

// Valid reports that work is allowed now: the lease has not ended, and store time is surely
// inside the window, with the margin to spare. It reads only the local clock, so call it as
// often as you like. The process may still pause right after it.
func (l Lease) Valid() bool { return l.active != nil && l.active.valid() }

// Remaining is how long work is allowed from now on, by the local clock; 0 if the lease has
// ended.
func (l Lease) Remaining() time.Duration {
	if l.active == nil || !l.active.valid() {
		return 0
	}
	return max(l.active.remaining(l.active.w.reading()), 0)
}

// plain is the lease for an event.
func (l Lease) plain() event.Lease {
	return event.Lease{
		WorkerType: l.WorkerType, InstanceID: l.InstanceID, Group: l.Group,
		Slot: l.Slot, Start: l.Start, Expiry: l.Expiry, Token: l.Token, Attempt: l.Attempt, Missed: l.Missed,
	}
}

// activeLease is a lease that user code works under.
type activeLease struct {
	w      *WorkerLease
	term   atomic.Pointer[machine.Term] // set anew by extensions
	jumps  int
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	ended     machine.Reason // why the context has ended; 0: it lives
	stop      func()         // the timer that ends the context at the last safe moment; nil: none is set
	at        time.Duration  // the local reading at which that fires
	place     int            // among the client's leases, from 1 on; 0: it is not among them. Guarded by their mutex
	news      bool           // LeaseExtended is to be called
	notifying bool           // a goroutine calls it
	notified  chan struct{}  // closed when the newest such goroutine has ended; nil: there was none

	wrote      atomic.Pointer[string] // by Lease.Wrote
	faltered   atomic.Bool            // by Lease.FailedWith, since the task was called
	progressed atomic.Int64           // the local reading at which the code last reported progress

	rests    atomic.Bool    // the task has returned, and is to be called again in the next slot, or its code waits in Lease.Rest
	again    chan struct{}  // the task that rests is to be called again
	inFlight sync.WaitGroup // of RunIfHeld; added to under mu, while ended is 0
	began    chan struct{}  // closed right before LeaseAllocated is called
	returned chan struct{}  // closed when it has returned
}

// newActiveLease prepares the lease of a term.
func (w *WorkerLease) newActiveLease(t machine.Term) *activeLease {
	h := &activeLease{
		w: w, jumps: w.state.Clock.Jumps,
		began: make(chan struct{}), returned: make(chan struct{}), again: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancelCause(w.base)
	h.ctx, h.cancel = ctx, cancel
	h.term.Store(&t)
	return h
}

// lease is the lease as it is now.
func (h *activeLease) lease() Lease {
	o, t := &h.w.options, h.term.Load()
	return Lease{
		WorkerType: o.WorkerType, InstanceID: o.InstanceID, Group: o.Group,
		Slot: t.Slot, Start: t.Start, Expiry: t.End, Token: t.Token, Attempt: t.Attempt, Missed: t.Missed, Triggered: !h.w.machine.Trigger.IsZero(), active: h,
	}
}

// valid asks the same question as the machine, at this moment.
func (h *activeLease) valid() bool {
	return h.lapsed() == 0 && (!h.w.machine.Rules.Look(machine.AtQuestion) || h.inside(h.w.reading()))
}

// atWork reports that the user's code runs: it has neither returned, nor does it rest up to the next slot.
func (h *activeLease) atWork() bool {
	select {
	case <-h.returned:
		return false
	default:
		return !h.rests.Load()
	}
}

// lapsed is why the context has ended, if it has.
func (h *activeLease) lapsed() machine.Reason {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// inside reports that store time is surely inside the window.
func (h *activeLease) inside(r reading) bool {
	t := h.term.Load()
	return !h.jumped(r) && h.w.machine.Rules.Inside(r.now, t.Start, t.End, h.w.options.Margin)
}

// jumped reports that the clocks have contradicted each other since the lease
// began.
func (h *activeLease) jumped(r reading) bool { return h.w.machine.Rules.Jumped(h.jumps, r.jumps) }

// remaining is how long store time stays surely inside the window.
func (h *activeLease) remaining(r reading) time.Duration {
	return h.w.machine.Rules.Remaining(r.now, h.term.Load().End, h.w.options.Margin)
}

// watch ends the context at the last safe moment, whatever the worker is doing: a timer that
// fires late or early is set again, and it is called when the time line has changed. The mutex
// is held over setting the timer, so that end finds it.
func (h *activeLease) watch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != 0 {
		return
	}
	r := h.w.reading()
	if !h.inside(r) {
		h.ended = machine.ClockJumped
		if !h.jumped(r) && h.remaining(r) <= 0 {
			h.ended = machine.WindowEnded
		}
		h.stopTimer()
		h.w.client.leases.remove(h)
		h.cancel(causes[h.ended])
		h.w.nudge()
		return
	}
	if !h.timed(r) {
		h.arm(r)
	}
}

// timed reports that the timer is set for the last safe moment already. Up to two rechecks before,
// that doesn't count: a timer stands still while the machine is suspended, so it must be a young
// one that ends the lease. The caller holds mu.
func (h *activeLease) timed(r reading) bool {
	left := h.remaining(r)
	at := r.local + left
	return h.stop != nil && left > 2*recheckHeld && at >= h.at && at-h.at < time.Millisecond
}

// recheck is watch, unless an earlier reading, of a moment ago, shows already that there is nothing
// to do.
func (h *activeLease) recheck(r reading) {
	h.mu.Lock()
	quiet := h.ended == 0 && h.inside(r) && h.timed(r)
	h.mu.Unlock()
	if !quiet {
		h.watch()
	}
}

// hasten sets the timer again if the lease has to end before that fires. It doesn't if not: many
// workers of a client get stamps, whose skews fluctuate. A lease that, by newer knowledge, may have
// begun too early goes on: the lease before it has ended by now. Its extension may be due earlier,
// too. So its worker looks at that, unless the end has moved by less than a margin.
func (h *activeLease) hasten(by time.Duration) {
	h.mu.Lock()
	r := h.w.reading()
	left := h.remaining(r)
	lives := h.ended == 0 && h.stop != nil && left > 0
	if lives && (r.local+left < h.at || r.local > h.at) {
		h.arm(r)
	}
	extends := lives && by > h.w.options.Margin && h.inside(r)
	h.mu.Unlock()
	if extends {
		h.w.nudge()
	}
	if !lives {
		h.watch()
	}
}

// arm sets the timer. The caller holds mu.
func (h *activeLease) arm(r reading) {
	left := max(h.remaining(r), time.Millisecond)
	h.stopTimer()
	h.at = r.local + left
	h.stop = h.w.client.after(left, h.due)
}

// due is called by the timer.
func (h *activeLease) due() {
	h.mu.Lock()
	h.stop = nil
	h.mu.Unlock()
	h.watch()
}

// stopTimer stops the timer, if there is one. The caller holds mu.
func (h *activeLease) stopTimer() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// extend makes the lease end later, unless it has ended.
func (h *activeLease) extend(t machine.Term) {
	h.mu.Lock()
	lives := h.ended == 0
	if lives {
		h.term.Store(&t)
		h.news = h.w.callbacks.LeaseExtended != nil
		if h.news && !h.notifying {
			h.notifying, h.notified = true, make(chan struct{})
			h.w.client.activity.add(h.w, 1)
			go h.notify(h.notified)
		}
	}
	h.mu.Unlock()
	if lives {
		h.watch()
	}
}

// notify calls LeaseExtended until there is no news.
func (h *activeLease) notify(done chan struct{}) {
	// Deferred, since user code may end its goroutine.
	defer func() {
		h.mu.Lock()
		if h.notified == done {
			h.notifying = false
		}
		h.mu.Unlock()
		close(done)
		h.w.client.activity.add(h.w, -1)
	}()
	<-h.began
	for h.takeNews() {
		err := guarded("LeaseExtended", func() { h.w.callbacks.LeaseExtended(h.lease()) })
		if err != nil {
			h.w.post(arrival{event: machine.Wake{}, observed: h.w.panicked(h, err), err: err})
		}
	}
}

func (h *activeLease) takeNews() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.news && h.ended == 0
	h.news = false
	h.notifying = news
	return news
}

// waitForExtended waits until LeaseExtended has returned. The context must have ended.
func (h *activeLease) waitForExtended() {
	h.mu.Lock()
	notified := h.notified
	h.mu.Unlock()
	if notified != nil {
		<-notified
	}
}

// end cancels the context, if it lives.
func (h *activeLease) end(why machine.Reason) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = why
	h.stopTimer()
	h.w.client.leases.remove(h)
	h.cancel(causes[why])
}
