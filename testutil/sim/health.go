package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// health is what the world knows of how a process fares: whether anything kept it
// from doing what it should, and how well it can know the time.
type health struct {
	mu      sync.Mutex
	ailing  int           // calls under way that go wrong
	ailed   time.Duration // until when something was wrong
	samples [2]sample     // of store time, the newest first
	server  string        // which member told the newest
	changed time.Duration // when another did for the first time, 0 if none did
	width   time.Duration // how wide what it knew of the time was then, at most
	called  time.Duration // when it last called the store
	revived time.Duration // when it did so for the first time after a suspend
}

// calls notes that the process calls the store. Up to its first call after a suspend it
// may wait for a timer, which stood still as long.
func (h *health) calls(at time.Duration, s outages) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := s.after(h.called); i < len(s) && s[i].to <= at; i++ {
		if s[i].kind == Suspend {
			h.revived = at
		}
	}
	h.called = at
}

// sample is what an answer of the store tells of the time: half of what is uncertain
// of it, at a true time.
type sample struct{ at, half time.Duration }

// ails notes that a call under way goes wrong; the result is to be called at its end,
// with how much longer its caller is to wait.
func (h *health) ails() func(at, longer time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ailing++
	return func(at, longer time.Duration) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ailing--
		h.ailed = max(h.ailed, at+longer)
	}
}

// ail notes that something is wrong until a true time.
func (h *health) ail(until time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ailed = max(h.ailed, until)
}

// heard notes a stamp that was asked for at one true time and came at another, now.
func (p *Process) heard(s store.Stamp, asked, came time.Duration) {
	h := &p.health
	fresh, width := sample{came, (came-asked+s.Granularity+s.MaxAge)/2 + s.Skew}, time.Duration(0)
	h.mu.Lock()
	changes := h.server != "" && h.server != s.Server
	h.mu.Unlock()
	if changes && !p.world.isSettled(p, came) {
		width = h.lag(came)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if changes {
		h.width = max(width, 2*(h.samples[0].half+widened(came-h.samples[0].at)), 2*fresh.half)
		h.changed = came
	}
	h.server = s.Server
	h.samples[1] = h.samples[0]
	h.samples[0] = fresh
}

// widened is by how much what is known of the time widens each way, at most.
func widened(d time.Duration) time.Duration { return d * 11 / 10000 }

// lag bounds how far the ends of what the process knows are from true time, as long as
// it bears in mind what members before the newest said: a stamp that came late, as the
// process did not run, may say little.
func (h *health) lag(at time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == 0 {
		return 0
	}
	return h.width + 2*widened(at-h.changed) + 2*time.Millisecond
}

// uncertainty bounds how far the middle of what a process takes for store time is from
// true time. What it knows contains the truth, and is no wider than what either of the
// last two answers alone tells of it, which grows by a thousandth each way. (Two, since
// an answer may have come since the process acted by the one before.) After another
// member has taken over it may know less: see settled.
func (h *health) uncertainty(at time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := time.Duration(0)
	for _, s := range h.samples {
		most = max(most, s.half+widened(at-s.at))
	}
	return most + 2*time.Millisecond
}

// awake reports that the process has called the store between two true times, the first
// of which is the end of a suspend.
func (h *health) awake(from, to time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return from <= h.revived && h.revived <= to
}

func (h *health) well(since time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ailing == 0 && h.ailed < since && h.samples[0].at > 0
}

// fit reports that nothing has kept a process from doing what it should, from one true
// time to another: it ran, wasn't told to stop, all its calls came back soon and with
// the truth, but for those that met an outage, and its timers came in time.
func (p *Process) fit(from, to time.Duration) bool {
	if p.dead.Load() || p.leaving.Load() || p.overruns.Load() || p.began > from || !p.health.well(from) {
		return false
	}
	stalls := p.host.stalls
	i := stalls.after(from)
	if i < len(stalls) && stalls[i].from <= to {
		return false
	}
	for i--; i >= 0 && stalls[i].kind != Suspend; i-- {
	}
	return i < 0 || stalls[i].to < p.began || p.health.awake(stalls[i].to, from)
}

// free reports that a process was not kept from claiming, from one true time to
// another, by code that outlasts its lease. The caller holds world.mu.
func (p *Process) free(from, to time.Duration) bool {
	l := p.lease
	if l == nil || l.over() && l.overAt < from {
		return true
	}
	held := !l.left || l.Ended >= to
	return l.Began < from && (held || l.over() && l.overAt <= l.Ended)
}

// up reports that the store served all, between two true times.
func (w *world) up(from, to time.Duration) bool {
	for _, down := range []outages{w.server.outages, w.server.elections} {
		if i := down.after(from); i < len(down) && down[i].from <= to {
			return false
		}
	}
	return true
}

// unstrayed reports that nothing was planted since a true time, and no poison stood in
// the way, nor what superseded it, which ends where surely nobody has a claim any more:
// minutes later, if it is of a process that knows little of the time. The caller holds
// world.mu.
func (w *world) unstrayed(l *ledger, since time.Duration) bool {
	n := len(w.strays)
	if n > 0 && w.strays[n-1].At >= since || l.resetAt > 0 && l.resetAt >= since || w.planted[l.head().Claim] {
		return false
	}
	for _, r := range slices.Backward(l.list) {
		end := w.time(r.WindowEnd)
		switch {
		case w.planted[r.Claim] || r.Seq > store.MaxSeq:
		case r.Kind == store.KindReset:
			return l.landedAt[r.Seq] < since && end < since
		case end < since:
			return true
		}
	}
	return true
}

// unsettled is for how many slots after a failover a process may know less of the time
// than its last answers tell: it bears in mind what the member before said, until the
// slots are over that others may have taken by that. Poison keeps it from knowing which.
const unsettled = 3

// settled reports that what a process knows of the time is what it heard last: the same
// member has told it since a true time, or nothing kept it from settling since then, nor
// for as long before as it may take it to know that a time has come. The caller holds
// world.mu.
func (w *world) settled(p *Process, l *ledger, since time.Duration) bool {
	now := w.now()
	p.health.mu.Lock()
	changed := p.health.changed
	p.health.mu.Unlock()
	since -= p.health.lag(now)
	return changed == 0 || changed < since && p.fit(since, now) && w.unstrayed(l, since)
}

// isSettled reports that a process is settled at a true time, now.
func (w *world) isSettled(p *Process, at time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mixed() && w.settled(p, w.ledger(p.options.WorkerType), at-unsettled*p.host.interval)
}
