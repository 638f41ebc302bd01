package workerlease

import (
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// leases are those of a client that have begun and not ended.
type leases struct {
	mu   sync.Mutex
	all  []*activeLease // each knows its place: a map's order would differ from run to run
	stop func()         // the timer of the next recheck; nil: none is set
	turn uint64         // how often it was set, or done without
}

// add takes in a lease that begins. If the client's clock knows boot time, all leases are then
// looked at again once a second, by one timer: those that end them stand still while the
// machine is suspended, and boot time doesn't.
func (l *leases) add(h *activeLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, h)
	h.place = len(l.all)
	if c := h.w.client; l.stop == nil && c.boot && c.rules.Look(machine.AtTimer) {
		c.recheckSoonLocked()
	}
}

// remove takes out a lease that has ended. It may be called more than once.
func (l *leases) remove(h *activeLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.place == 0 {
		return
	}
	last := len(l.all)
	l.all[h.place-1], l.all[last-1].place = l.all[last-1], h.place
	l.all[last-1] = nil
	l.all, h.place = l.all[:last-1], 0
	if len(l.all) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
		l.turn++
	}
}

// list is a copy: ending a lease removes it.
func (l *leases) list() []*activeLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// recheckSoonLocked sets the timer of the next recheck. The caller holds the leases' mutex.
func (c *Client) recheckSoonLocked() {
	l := &c.leases
	l.turn++
	turn := l.turn
	l.stop = c.after(recheckHeld, func() { c.recheck(turn) })
}

// recheck looks at all leases again, and sees to it that this is repeated: unless the last
// lease has ended meanwhile, since the next one that begins sets a timer of its own.
func (c *Client) recheck(turn uint64) {
	var r reading
	of := -1 // the epoch that r is for
	for _, h := range c.leases.list() {
		if settled := int(h.w.settled.Load()); settled != of {
			r, of = c.reading(settled), settled
		}
		h.recheck(r)
	}
	l := &c.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == turn {
		c.recheckSoonLocked()
	}
}

// hasten sets the timers of all leases again, which may have to end earlier by some time.
func (c *Client) hasten(by time.Duration) {
	for _, h := range c.leases.list() {
		h.hasten(by)
	}
}

// review makes all workers look at everything again, and the leases that they hold, too: a
// worker may be busy with an observer. The cause of it is about to get an event anyway.
func (c *Client) review(cause *WorkerLease) {
	for _, w := range c.activity.list() {
		if w != cause {
			w.nudge()
		}
	}
	for _, h := range c.leases.list() {
		h.watch()
	}
}
