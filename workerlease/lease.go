package workerlease

import (
	"context"
	"sync"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Lease is the right to work for one window, as given to the callbacks. It may
// be copied, and its methods are safe for concurrent use.
type Lease struct {
	WorkerType string
	InstanceID string
	Group      string
	// Slot is the slot of the schedule that was won.
	Slot slots.Slot
	// Start and Expiry bound the window, in store time. Work ends before Expiry:
	// see Remaining.
	Start, Expiry time.Time
	// Token is the fencing token. It grows strictly from lease to lease of the
	// worker type. Pass it along with every write to a resource that can refuse a
	// token lower than the highest it has seen: that alone protects against a
	// pause between the last check and the write.
	Token int64

	hold *hold
}

// Valid reports whether work is allowed now: the lease has not ended, and store
// time is surely inside the window, with the margin to spare. It asks only the
// local clock and may be called as often as one likes. A pause of the process
// may come right behind it.
func (l Lease) Valid() bool { return l.hold != nil && l.hold.valid() }

// Remaining is how long work is allowed, by the local clock: zero when the lease
// has ended.
func (l Lease) Remaining() time.Duration {
	if l.hold == nil || !l.hold.valid() {
		return 0
	}
	return max(l.hold.remaining(), 0)
}

// hold is a lease that user code works under.
type hold struct {
	w      *WorkerLease
	tenure machine.Tenure
	lease  Lease
	jumps  int
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	ended machine.Reason // why the context has ended; 0: it lives
	stop  func()         // the timer that ends the context at the last safe moment

	began    chan struct{} // closed right before LeaseAllocated is called
	returned chan struct{} // closed when it has returned
}

// newHold prepares the lease of a tenure.
func (w *WorkerLease) newHold(t machine.Tenure) *hold {
	h := &hold{
		w: w, tenure: t, jumps: w.state.Jumps,
		began: make(chan struct{}), returned: make(chan struct{}),
	}
	ctx, cancel := context.WithCancelCause(w.base)
	h.ctx, h.cancel = ctx, cancel
	h.lease = Lease{
		WorkerType: w.options.WorkerType, InstanceID: w.options.InstanceID, Group: w.options.Group,
		Slot: t.Slot, Start: t.Start, Expiry: t.End, Token: t.Token, hold: h,
	}
	return h
}

// valid asks the same question as the machine, at this moment.
func (h *hold) valid() bool {
	return h.lapsed() == 0 && (!h.w.machine.Rules.Look(machine.AtQuestion) || h.inside())
}

// lapsed is why the context has ended, if it has.
func (h *hold) lapsed() machine.Reason {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

func (h *hold) inside() bool {
	return !h.jumped() && h.w.machine.Rules.Inside(h.w.now(), h.tenure.Start, h.tenure.End, h.w.options.Margin)
}

// jumped reports that the clocks have contradicted each other since the lease
// began.
func (h *hold) jumped() bool { return h.w.machine.Rules.Jumped(h.jumps, h.w.client.jumps()) }

// remaining is how long store time stays surely inside the window.
func (h *hold) remaining() time.Duration {
	return h.w.machine.Rules.Remaining(h.w.now(), h.tenure.End, h.w.options.Margin)
}

// watch ends the context at the last safe moment, whatever the worker's
// goroutine is doing: a timer that fires late or early is set again, and it is
// called when the time line has changed. The mutex is held over setting the
// timer, so that end finds it.
func (h *hold) watch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != 0 {
		return
	}
	if h.stop != nil {
		h.stop()
	}
	if !h.inside() {
		h.ended = machine.ClockJumped
		if !h.jumped() && h.remaining() <= 0 {
			h.ended = machine.WindowEnded
		}
		h.cancel(causes[h.ended])
		h.w.client.activity.nudge(h.w)
		return
	}
	d := max(h.remaining(), time.Millisecond)
	if h.w.client.boot && h.w.machine.Rules.Look(machine.AtTimer) {
		d = min(d, recheckHeld)
	}
	h.stop = h.w.client.after(d, h.watch)
}

// end cancels the context, if it lives.
func (h *hold) end(why machine.Reason) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = why
	if h.stop != nil {
		h.stop()
	}
	h.cancel(causes[why])
}
