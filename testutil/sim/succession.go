package sim

import (
	"slices"
	"time"
)

// lookSucceeded checks, after a holder has died or has left the rest of its slot to others, that a
// worker takes over within FailoverWithin, the turn of the lowest priority and the uncertainty of the time. Towards the
// end of a slot the rest may be lost. The caller holds world.mu.
func (w *world) lookSucceeded(p *Process, how string) {
	o, died, token := p.options, w.now(), p.lease.Token
	d := o.FailoverWithin
	alike := func(h *host) bool {
		x := h.options
		return h.plain && x.FailoverWithin == d && x.WorkerType == o.WorkerType && x.Job == nil && x.Lead == o.Lead && x.Step == o.Step
	}
	if d == 0 || w.beyond || w.mixed() || !p.host.plain || slices.ContainsFunc(w.hosts, func(h *host) bool { return !alike(h) }) {
		return
	}
	slot := p.host.schedule.At(w.origin.Add(died))
	lowest := time.Duration(0)
	for _, h := range w.hosts {
		lowest = max(lowest, time.Duration(h.options.Priority))
	}
	next := p.host.schedule.Next(slot.Start)
	lead, step := p.host.lead(next)
	late := w.late(slot.Length())
	by := died + d + (lowest+1)*step + 2*late
	if by >= min(w.time(slot.End)-lead-late, w.o.Length) || d < 4*late+4*p.margin {
		return
	}
	w.later(p, lookLane, by-died, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l, now, since := w.ledger(o.WorkerType), w.now(), died-2*d
		if !w.up(since, now) || !w.undisturbed(l, since) || w.barredSince(l, since) || w.prefersSince(l, since) {
			return
		}
		for _, q := range w.peers(p.host) {
			// A worker that had a part of the slot may be through with it.
			had := q.lease != nil && q.lease.End > w.time(slot.Start)
			if had || q.began > w.time(slot.Start)-lead-late || !w.settled(q, l, now-unsettled*slot.Length()) || !q.fit(since, now) {
				continue
			}
			w.demands.Succeeded++
			// The last append of the dead holder may have landed late, and its successor may have lost the
			// lease again by now.
			if !w.has(l, now, now, 0) && !w.has(l, died, now, token) {
				w.violate("nobody has taken over from %v, %v after it %s, and nothing kept %v from it", p.lease, now-died, how, q)
			}
			return
		}
	})
}
