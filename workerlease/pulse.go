package workerlease

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// StuckAfter is how long a worker may be late before it counts as stuck: see Status.Alive.
const StuckAfter = 10 * time.Second

// pulse shows whether a worker goes round: by when it is to take in something next.
type pulse struct {
	due  atomic.Int64           // by the clock of timers; since when it is busy, if it is
	in   atomic.Pointer[string] // the user's code that it waits for
	late time.Duration          // by when the operation under way has timed out; only of the goroutine that runs the worker
}

// What a worker waits for while it does nothing else.
var inObserver, inError = "the Observer or Logger", "Callbacks.Error"

// ticks is a reading of the clock that timers go by. Unlike boot time it stands still with them while the
// machine is suspended, so nobody counts as stuck after that.
func (c *Client) ticks() time.Duration { return c.clock.Since(c.origin) }

// beat notes that the worker takes in something now.
func (w *WorkerLease) beat() { w.pulse.due.Store(int64(w.client.ticks())) }

// rest notes that the worker waits: for a timer, and for an operation that ends by its time-out.
func (w *WorkerLease) rest(d time.Duration) {
	due := w.client.ticks() + d
	if w.state.Pending != machine.Nothing {
		due = min(due, w.pulse.late)
	}
	w.pulse.due.Store(int64(due))
}

// retire notes that the worker has ended.
func (w *WorkerLease) retire() { w.pulse.due.Store(math.MaxInt64) }

// stuck is how long the worker has been late, and what it waits for.
func (w *WorkerLease) stuck() (d time.Duration, waitsFor string) {
	d = w.client.ticks() - time.Duration(w.pulse.due.Load())
	if d < time.Second {
		return 0, ""
	}
	if name := w.pulse.in.Load(); name != nil {
		return d, *name
	}
	return d, "an operation on the store"
}

// outside calls the user's code from the goroutine that runs the worker, and reports how long that took if the
// worker was stuck meanwhile.
func (w *WorkerLease) outside(name *string, call func()) {
	w.beat()
	w.pulse.in.Store(name)
	call()
	took := w.client.ticks() - time.Duration(w.pulse.due.Load())
	if w.beat(); took >= StuckAfter && w.client.observer != nil {
		w.pulse.in.Store(&inObserver) // It may block once more.
		w.client.observer.Observe(event.Stuck{Worker: w.label(), In: *name, Took: took})
		w.beat()
	}
	w.pulse.in.Store(nil)
}
