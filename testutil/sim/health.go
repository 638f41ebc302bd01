package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// health is the world's knowledge of a process: whether a fault kept it from acting, and how
// well it can know the time.
type health struct {
	mu      sync.Mutex
	ailing  int           // calls under way that go wrong
	ailed   time.Duration // until when something was wrong
	samples [2]sample     // of store time, the newest first
	first   time.Duration // the uncertainty of the first of all
	server  string        // the member that sent the newest
	changed time.Duration // when the member changed, 0 if it never did
	width   time.Duration // a bound of the width of its interval then
	called  time.Duration // its last call to the store
	revived time.Duration // its first call after a suspend
}

// calls notes a call of the process to the store. Until its first call after a suspend, the
// process may wait for a timer that stood still as long.
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

// sample is the uncertainty of an answer's time: half the width of its interval, at a true
// time.
type sample struct{ at, half time.Duration }

// ails notes a call under way that a fault strikes. Call the result at the end of the call,
// with the extra time that its caller must wait.
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

// ail notes a fault that lasts until a true time.
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
	if h.server = s.Server; h.samples[0].at == 0 {
		h.first = fresh.half
	}
	h.samples[1] = h.samples[0]
	h.samples[0] = fresh
}

// firstHalf is the uncertainty of the time by the first answer.
func (h *health) firstHalf() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first
}

// widened bounds how much an interval of store time widens each way.
func widened(d time.Duration) time.Duration { return d * 11 / 10000 }

// lag bounds how far the ends of the process's interval are from true time while it still
// counts what earlier members said. A stamp that came late, because the process did not run,
// says little.
func (h *health) lag(at time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == 0 {
		return 0
	}
	return h.width + 2*widened(at-h.changed) + 2*time.Millisecond
}

// uncertainty bounds the distance from true time of the middle of a process's interval of
// store time. The interval contains the truth. It is no wider than that of either of the last
// two answers alone, which grows by a thousandth each way. (Two, because an answer may have
// come since the process acted by the one before.) After a failover the process may know less:
// see settled.
func (h *health) uncertainty(at time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := time.Duration(0)
	for _, s := range h.samples {
		most = max(most, s.half+widened(at-s.at))
	}
	return most + 2*time.Millisecond
}

// awake reports whether the process has called the store between two true times. The first is
// the end of a suspend.
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

// fit reports whether nothing kept a process from acting between two true times. It ran, was
// not being stopped, its timers came in time, and all its calls came back soon and truthfully,
// except for calls in an outage.
func (p *Process) fit(from, to time.Duration) bool {
	if p.dead.Load() || p.leaving.Load() || p.overruns.Load() || p.began > from || time.Duration(p.back.Load()) > from || p.ill(from, to) || !p.health.well(from) {
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

// free reports whether no code that outlasts its lease kept a process from claiming between
// two true times. The caller holds world.mu.
func (p *Process) free(from, to time.Duration) bool {
	l := p.lease
	if l == nil || l.over() && l.overAt < from {
		return true
	}
	held := !l.left || l.Ended >= to
	return l.Began < from && (held || l.over() && l.overAt <= l.Ended)
}

// up reports whether the store had no outage between two true times.
func (w *world) up(from, to time.Duration) bool {
	for _, down := range []outages{w.server.outages, w.server.elections, w.server.votes} {
		if i := down.after(from); i < len(down) && down[i].from <= to {
			return false
		}
	}
	return true
}

// undisturbed reports whether nothing was planted since a true time, and neither poison nor the
// reset that superseded it stood in the way. A reset ends when surely no worker has a claim
// any more: minutes later, if its writer knows the time badly. The caller holds world.mu.
func (w *world) undisturbed(l *ledger, since time.Duration) bool {
	n := len(w.plantings)
	if n > 0 && w.plantings[n-1].At >= since || l.resetAt > 0 && l.resetAt >= since || w.planted[l.head().Claim] {
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

// unsettled is the number of slots after a failover in which a process may know the time worse
// than by its last answers. It counts what the member before said until the slots are over
// that others may have taken by that. Poison hides which slots those are.
const unsettled = 3

// settled reports whether a process knows the time as well as its last answers. Either the
// same member has sent them since a true time, or nothing has kept the process from settling
// since then, nor for as long before as it may need to know that a time has come. The caller
// holds world.mu.
func (w *world) settled(p *Process, l *ledger, since time.Duration) bool {
	now := w.now()
	p.health.mu.Lock()
	changed := p.health.changed
	p.health.mu.Unlock()
	since -= p.health.lag(now)
	return changed == 0 || changed < since && p.fit(since, now) && w.undisturbed(l, since)
}

// isSettled reports whether a process is settled now, at a true time.
func (w *world) isSettled(p *Process, at time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mixed() && w.settled(p, w.ledger(p.options.WorkerType), at-unsettled*p.host.interval)
}
