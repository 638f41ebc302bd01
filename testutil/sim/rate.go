package sim

import (
	"sync"
	"time"
)

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
	}
}
