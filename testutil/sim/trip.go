package sim

import (
	"errors"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

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
