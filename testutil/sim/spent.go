package sim

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
)

// spent counts the calls of a process since the last check, and averages the time that its
// appends take.
type spent struct {
	asks, reads, gets, appends, trims atomic.Int64

	readTrips, appendTrips trips

	mu       sync.Mutex
	since    time.Duration    // the time of the last check
	averages [4]time.Duration // of the times that appends took, the newest first
}

// calls counts the calls to the store by kind.
type calls struct {
	asks, reads, gets, appends, trims int64
	since                             time.Duration
}

// reset returns the calls since the last reset.
func (s *spent) reset(now time.Duration) calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := calls{s.asks.Swap(0), s.reads.Swap(0), s.gets.Swap(0), s.appends.Swap(0), s.trims.Swap(0), s.since}
	s.since = now
	return c
}

// took notes how long an append took for its sender.
func (s *spent) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.averages[0]
	copy(s.averages[1:], s.averages[:])
	s.averages[0] = last + (d-last)/4
}

// average is a lower bound of the average time of an append; the newest counts for a quarter.
// It is only a bound because a process knows its turn for a while before it claims, and may
// have appended in between.
func (s *spent) average() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := s.averages[0]
	for _, a := range s.averages[1:] {
		least = min(least, a)
	}
	return least * 99 / 100
}

// spread is a lower bound of the distance that a process keeps between the claims of two
// workers: the uncertainty of the time, and how much longer its appends took than it allows for.
// Stamps of one clock are all widened equally on both sides. What the shortest round trip makes
// uncertain doesn't count.
func (w *world) spread(p *Process) (spread time.Duration) {
	reads, _ := p.spent.readTrips.most()
	appends, _ := p.spent.appendTrips.most()
	if p.shared.Load() {
		reads = w.trip()
	}
	if len(w.server.steps) == 0 && len(w.o.Faults.Off) == 0 {
		spread = max(0, w.o.Faults.Skew-reads/2)
	}
	if !p.shared.Load() {
		spread += max(0, p.spent.average()-appends)
	}
	return spread
}

// lookSpent checks the calls of each process since the last check, one slot ago. A slot costs
// one read of the time and one of the ledger, and an append if the worker finds it free.
// Between boundaries no worker calls the store.
func (w *world) lookSpent(h *host, start, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, l := w.now(), w.ledger(h.options.WorkerType)
	since := start - 2*d
	known := !w.beyond && !w.mixed() && w.up(since, now) && w.undisturbed(l, since) && !w.ordered(l, since-d)
	for _, p := range w.peers(h) {
		c, o := p.spent.reset(now), p.options
		if !known || c.since < start-d || o.Job != nil || o.FailoverWithin > 0 || p.shared.Load() ||
			!w.single(l, since, c.since) || !w.settled(p, l, now-unsettled*d) || !p.fit(since, now) || !p.free(since, now) {
			continue
		}
		lead, step := p.host.lead(h.schedule.At(w.origin.Add(start)))
		off := p.health.uncertainty(now) + widened(d)
		if time.Duration(o.Priority+1)*step+2*off+w.claiming() > lead {
			continue // At its turn the slot may have begun while the one before is not over.
		}
		asks := int64(1)
		if off > lead/4 {
			asks = 3 // It looks early, because its turn may have come.
		}
		gets, trims := c.appends, int64(0)
		if r := l.head(); o.Continuous || p.claimed == r.Claim {
			gets, trims = c.gets, c.trims // It may trim.
		}
		w.demands.Costs++
		if c.asks+c.reads+c.appends == 0 {
			w.violate("%v has called the store for nothing of the slot from %v, and nothing has kept it from contending", p, start)
		}
		if c.asks > asks || c.reads > 1 || c.appends > 1 || c.gets > gets || c.trims > trims {
			w.violate("%v has asked for the time %d times, read the ledger %d times, a record %d times, appended %d times and trimmed %d times for the slot from %v: that costs one look and one append at most",
				p, c.asks, c.reads, c.gets, c.appends, c.trims, start)
		}
	}
}

// single reports whether only grants have landed since a true time, and at most one since
// another. The caller holds world.mu.
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

// spins is the number of successive waits of less than a millisecond that is too many. An
// engine that rounds such waits down to zero spins.
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

// mostAtOnce is how often a process may read its clock at one instant. True time stands still while code runs, so code that waits for
// nothing would keep the simulation at that instant for ever.
const mostAtOnce = 1 << 20

// looks notes that the process reads its clock. Nothing but a panic ends what spins.
func (p *Process) looks(at time.Duration) {
	if p.looked.Swap(int64(at)) != int64(at) {
		p.atOnce.Store(0)
	}
	if p.atOnce.Add(1) == mostAtOnce {
		panic(fmt.Sprintf("sim: seed %d: %v spins: it has read its clock %d times at %v: find it among the goroutines below", p.world.o.Seed, p, mostAtOnce, at))
	}
}

// trips are the times that calls of one kind took a process, and what its engine may make
// of them.
type trips struct {
	mu     sync.Mutex
	recent [4]time.Duration // that were answered, the newest first
	leasts [6]time.Duration // the shortest of four, now and before each of the newest calls
}

// took notes how long a call took, if it was answered.
func (t *trips) took(d time.Duration, err error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	copy(t.recent[1:], t.recent[:])
	t.recent[0] = max(d, 1)
	least := d
	for _, r := range t.recent {
		if r > 0 {
			least = min(least, r)
		}
	}
	copy(t.leasts[1:], t.leasts[:])
	t.leasts[0] = least
}

// most bounds what the engine takes for the shortest time of such a call, and newest is how
// long the newest took. It is only a bound because a process knows its turn for a while before
// it claims.
func (t *trips) most() (most, newest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.leasts {
		most = max(most, d)
	}
	return most * 101 / 100, t.recent[0]
}

// ahead bounds how long before its turn a process sends a claim, so that it lands at its turn:
// as long as an append takes at least, by what it knows, and as much longer as it took reading
// the ledger to be. User code that calls the store, too, makes that unknown.
func (w *world) ahead(p *Process) time.Duration {
	reads, newest := p.spent.readTrips.most()
	appends, _ := p.spent.appendTrips.most()
	switch {
	case p.shared.Load():
		return 2 * w.trip()
	case appends == 0:
		appends = reads
	}
	return appends + max(0, reads-newest)
}

// trip bounds the round trip of a call if nothing goes wrong.
func (w *world) trip() time.Duration {
	return 2*w.o.Faults.Latency + w.o.Faults.Distance + 4*round
}

// The stretch of time over which a process's reads are counted. It is longer than a few rows of
// retries, which begin a tenth of a second apart and soon come seconds apart, and shorter than
// any outage that matters to a store's bill.
const rateWindow = time.Minute

// readsPerSecond is how often a process may read, on average over rateWindow, whatever the
// store answers.
const readsPerSecond = 2

// readsPerPart is how many reads a slot, or a part of it by FailoverWithin, may cost. It counts
// for slots and parts that are shorter than two seconds.
const readsPerPart = 2 * readsPerSecond

// readsPerExtension is how many more reads a part may cost if it can't be extended: that is tried
// again for a quarter of FailoverWithin, at least a 64th of it apart.
const readsPerExtension = 64 / 4

// readsToClose is how many more reads a Job may cost: what came of a slot is recorded as soon as
// the store answers, or others would do the work again. That is tried at least a quarter of a
// second apart.
const readsToClose = int(rateWindow / (time.Second / 4))

// rate counts the reads of a process: of the time, of the head and of single records.
type rate struct {
	mu   sync.Mutex
	last []time.Duration // a ring of the newest reads, as many as a window may have
	next int
	said bool
}

// mostReads is how many reads a process may make in a window.
func (p *Process) mostReads() int {
	o, part, more := p.options, p.host.interval, 0
	if d := o.FailoverWithin; d > 0 {
		part = min(part, d)
		more = readsPerExtension * int(rateWindow/d+1)
	}
	if o.Job != nil {
		more += readsToClose
	}
	part = min(max(part, time.Millisecond), readsPerPart*time.Second/readsPerSecond)
	return int(readsPerPart*rateWindow/part) + more
}

// counts counts a read, and checks that a window has no more of them than it may. User code
// that may call the store reads as often as it likes.
func (p *Process) counts() {
	if p.dead.Load() || p.shared.Load() {
		return
	}
	r, at := &p.rate, p.world.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = make([]time.Duration, p.mostReads())
	}
	first := r.last[r.next]
	r.last[r.next] = at
	r.next = (r.next + 1) % len(r.last)
	if first > 0 && at-first < rateWindow && !r.said {
		r.said = true
		p.world.violate("%v reads more than %d times in %v: %d reads in %v", p, len(r.last), rateWindow, len(r.last)+1, at-first)
		p.crashSoon(Crash) // It may go on like that, and append as often: the run would hardly end.
	}
}
