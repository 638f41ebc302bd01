package sim

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
)

// spent counts the calls that a process has made since it was looked at, and how long its
// appends take.
type spent struct {
	asks, reads, gets, appends, trims atomic.Int64

	mu       sync.Mutex
	since    time.Duration    // when it was looked at
	averages [4]time.Duration // of what appends took, the newest first
}

// calls are how often the store was called for what.
type calls struct {
	asks, reads, gets, appends, trims int64
	since                             time.Duration
}

// reset returns what was spent since it was called before.
func (s *spent) reset(now time.Duration) calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := calls{s.asks.Swap(0), s.reads.Swap(0), s.gets.Swap(0), s.appends.Swap(0), s.trims.Swap(0), s.since}
	s.since = now
	return c
}

// took notes how long an append took, as its sender has seen it.
func (s *spent) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.averages[0]
	copy(s.averages[1:], s.averages[:])
	s.averages[0] = last + (d-last)/4
}

// average is how long appends take, at least, on the average that counts the newest for a
// quarter. (At least, since a process that claims has known for a while when its turn is,
// and may have appended something since.)
func (s *spent) average() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := s.averages[0]
	for _, a := range s.averages[1:] {
		least = min(least, a)
	}
	return least * 99 / 100
}

// spread is how far apart a process takes two workers' acts to be, at least: by what is
// uncertain of the time, and by how long its appends took. Stamps of one clock are all
// widened by the same on both sides.
func (w *world) spread(p *Process) (spread time.Duration) {
	if len(w.server.steps) == 0 {
		spread = w.o.Faults.Skew
	}
	if !p.shared.Load() {
		spread += p.spent.average()
	}
	return spread
}

// lookSpent looks what each process has called since it was looked at, a slot ago. One
// slot is one look, at the time and at the ledger, and an append for whoever finds it
// free; and between the boundaries there is nothing to do.
func (w *world) lookSpent(h *host, start, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, l := w.now(), w.ledger(h.options.WorkerType)
	since := start - 2*d
	told := !w.beyond && !w.mixed() && w.up(since, now) && w.unstrayed(l, since)
	for _, p := range w.peers(h) {
		c, o := p.spent.reset(now), p.options
		if !told || c.since < start-d || o.Job != nil || o.FailoverWithin > 0 || p.shared.Load() ||
			!w.single(l, since, c.since) || !w.settled(p, l, now-unsettled*d) || !p.fit(since, now) || !p.free(since, now) {
			continue
		}
		lead, step := p.host.lead(h.schedule.At(w.origin.Add(start)))
		off := p.health.uncertainty(now) + widened(d)
		if time.Duration(o.Priority+1)*step+2*off+w.claiming() > lead {
			continue // The slot may have begun at its turn, and that before it not be over.
		}
		asks := int64(1)
		if off > lead/4 {
			asks = 3 // It begins to look early, since its turn may have come.
		}
		gets, trims := c.appends, int64(0)
		if r := l.head(); o.Continuous || p.claimed == r.Claim {
			gets, trims = c.gets, c.trims // It may trim.
		}
		w.demands.Costs++
		if c.asks > asks || c.reads > 1 || c.appends > 1 || c.gets > gets || c.trims > trims {
			w.violate("%v has asked for the time %d times, read the ledger %d times, a record %d times, appended %d times and trimmed %d times for the slot from %v: that costs one look and one append at most",
				p, c.asks, c.reads, c.gets, c.appends, c.trims, start)
		}
	}
}

// single reports that nothing but grants has landed since a true time, and no more than
// one since another. The caller holds world.mu.
func (w *world) single(l *ledger, since, last time.Duration) bool {
	n := 0
	for _, r := range slices.Backward(l.list) {
		if w.planted[r.Claim] || r.Seq > store.MaxSeq {
			continue // It may lie above a free key, and have landed long before what is below.
		}
		landed := l.landedAt[r.Seq]
		if landed < since {
			break
		}
		if r.Kind != store.KindGrant {
			return false
		}
		if landed >= last {
			n++
		}
	}
	return n <= 1
}

// spins is how many waits of less than a millisecond one after the other are too many:
// whoever rounds them down to nothing waits again and again.
const spins = 5

// waits notes that the engine sets a timer.
func (p *Process) waits(d time.Duration) {
	if d >= time.Millisecond || p.dead.Load() {
		p.short.Store(0)
		return
	}
	if p.short.Add(1) == spins {
		p.world.violate("%v spins: it waits for less than a millisecond for the %dth time in a row", p, spins)
	}
}
