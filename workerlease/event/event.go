// Package event has what happens to workers, as values, for logs and metrics: see ClientOptions.Observer of
// package workerlease. All times are store time.
package event

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// Observer gets every event of the workers of a client. Observe is called for one event of a
// worker at a time, in order. It must return quickly, and must not panic. With several workers it is called
// concurrently.
//
// The worker waits for Observe: one that blocks, such as a log that nobody reads, stops it. A lease's context
// ends on time even then. But LeaseExpired is called late, the lease isn't extended or released, and no slot is
// claimed. Status.Stuck and Status.Blocked show that, health probes fail after 10 s, and the event Stuck follows
// when Observe has returned. An observer that may block should pass events on through a buffered channel, and drop
// those that don't fit.
type Observer interface {
	Observe(e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(Event)

// Observe calls f, unless that is nil.
func (f ObserverFunc) Observe(e Event) {
	if f != nil {
		f(e)
	}
}

// Observers passes each event on to all of them, in order. Those that are nil are left out.
func Observers(all ...Observer) Observer {
	var o observers
	for _, each := range all {
		if each != nil {
			o = append(o, each)
		}
	}
	return o
}

// observers passes events on to several.
type observers []Observer

func (o observers) Observe(e Event) {
	for _, each := range o {
		each.Observe(e)
	}
}

// Event is something that happened to a worker: a value of one of the types below. Later
// versions may add types.
type Event interface {
	// Of returns the worker that it happened to.
	Of() Worker
}

// Worker names a worker in events.
type Worker struct {
	WorkerType string
	InstanceID string
}

// Of returns the worker itself.
func (w Worker) Of() Worker { return w }

// Lease is the lease of an event, as it was then.
type Lease struct {
	WorkerType string
	InstanceID string
	Group      string
	Slot       slots.Slot
	// Start and Expiry bound the window.
	Start, Expiry time.Time
	Token         int64
	Attempt       int
	Missed        bool
}

// Holder is the worker that holds a lease or, if Group is set, its whole group.
type Holder struct {
	InstanceID string
	Group      string
	Priority   int
	// Token is the fencing token of the lease.
	Token int64
	// From and Until bound all windows that it has claimed so far.
	From, Until time.Time
	// Claimed is the earliest time at which it may have made its newest claim; zero if
	// that isn't known, as right after a done record.
	Claimed time.Time
}

// Reason says why a lease ended, or why a slot was missed: one of the constants of package workerlease.
type Reason string
