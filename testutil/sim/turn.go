package sim

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// lead is how long before the start of a slot a worker may claim it. step bounds the distance
// between the turns of two priorities: it widens where the time is uncertain or the store slow.
func (h *host) lead(slot slots.Slot) (lead, step time.Duration) {
	o := h.options
	lead = priority.Lead(h.schedule.At(slot.Start.Add(-1)).Length(), o.Lead)
	if o.FailoverWithin > 0 {
		lead = min(lead, o.FailoverWithin/2)
	}
	return lead, priority.NewTurns(lead, o.Step, lead).Step
}

// earliest is where in the lead a worker's turn begins at the earliest, by its priority and by
// whether it had the slot before, surely or maybe.
func (h *host) earliest(step time.Duration, surely, maybe bool) time.Duration {
	turn := time.Duration(h.options.Priority) * step
	switch tie := h.options.TieBreak; {
	case tie == priority.Sticky && !maybe:
		turn += step / 4
	case tie == priority.Rotate && surely:
		turn += step * 5 / 8
	}
	return turn - time.Millisecond // Steps are rounded.
}

// ordered reports whether the world knows a worker's turn: with an interval, and without a Job,
// whose failure lets others go first, or a Policy.
func (h *host) ordered() bool { return h.plain && h.options.Job == nil && h.options.Policy == nil }

// auditTurn checks, when a claim for a slot that has not begun is sent, that it will land when
// the turn of the worker's priority has come, as far as the worker can know. The caller holds
// world.mu.
func (w *world) auditTurn(p *Process, r store.Record) {
	at, start := w.now(), w.time(r.SlotStart)
	if !p.host.ordered() || w.beyond || w.mixed() || at >= start || p.claimed == r.Claim || r.Triggered() || r.WorkerType != p.options.WorkerType {
		return
	}
	p.claimed = r.Claim
	slot := slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	o := p.options
	l := w.ledger(r.WorkerType)
	switch extends := l.head().Claim == r.Claim || p.leases[r.Token] != nil; {
	case extends && (o.NoFailback || !r.WindowStart.Equal(r.SlotStart)):
		return // It goes on before others may claim,
	case (o.Continuous || o.FailoverWithin > 0) && !p.health.well(at-slot.Length()):
		return // or wanted to, and was told that it has nothing,
	case !w.settled(p, l, at-unsettled*slot.Length()):
		return // or can't know the time as well as others,
	case !w.undisturbed(l, at-slot.Length()), w.ordered(l, at-2*slot.Length()):
		return // or has read, and heard of the time, more than once since its turn came.
	}
	surely := p.lease != nil && p.lease.told == start && p.lease.Why == "" // who has stepped down has given it back
	maybe := o.Group != "" || p.lease != nil && p.lease.End == start || p.reach.Equal(r.SlotStart)
	lead, _ := p.host.lead(slot)
	step := priority.NewTurns(lead, o.Step, w.spread(p)).Step
	turn := start - lead + p.host.earliest(step, surely, maybe) - w.ahead(p)
	w.demands.Turns++
	if early, off := turn-at, p.health.uncertainty(at); early > off {
		w.violate("%v, of priority %d, claims the slot from %v in seq %d, %v before its turn, and knows the time to %v",
			p, o.Priority, start, r.Seq, shown(early), shown(off))
	}
}

// joins reports that a worker takes what is left of the slot in which it starts.
func joins(o workerlease.Options) bool {
	return !o.WaitForBoundary && o.Group == "" && (o.FailoverWithin > 0 || o.Continuous || o.Job != nil)
}

// auditEntry checks that a process doesn't get a lease of the slot in which it started, unless
// it may. The caller holds world.mu.
func (w *world) auditEntry(p *Process, l workerlease.Lease) {
	o := p.options
	if !p.host.plain || joins(o) || o.Group != "" || l.Missed || w.beyond {
		return
	}
	w.demands.Entries++
	// It has asked for the time once.
	if start, late := w.time(l.Slot.Start), p.health.firstHalf()+500*time.Millisecond; start < p.began-late {
		w.violate("%v started at %v, and has the slot from %v, which it is to leave to others", p, p.began, start)
	}
}

// auditPassed checks, when a claim has landed before its slot begins, that no higher priority
// was passed over that had its turn and the time to claim, and that nothing kept from it. The
// caller holds world.mu.
func (w *world) auditPassed(p *Process, l *ledger, r, before store.Record, at time.Duration) {
	start := w.time(r.SlotStart)
	if !p.host.ordered() || w.beyond || w.mixed() || at >= start || r.WindowStart != r.SlotStart || r.Claim == before.Claim {
		return
	}
	slot := slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	for _, h := range w.hosts {
		b := h.running
		if b == nil || b == p || h.options.Priority >= r.Priority || h.options.WorkerType != r.WorkerType || !h.ordered() {
			continue
		}
		lead, step := h.lead(slot)
		if 4*2*(w.o.Faults.Latency+w.o.Faults.Distance) > lead {
			continue // The order is sure for round trips of up to a quarter of the lead.
		}
		open := start - lead
		since, off := open-slot.Length(), b.health.uncertainty(at)
		if l.landedAt[before.Seq] > open-off-w.claiming() || !w.undisturbed(l, since) || w.ordered(l, since-slot.Length()) || !w.up(since, at) ||
			!w.settled(b, l, at-unsettled*slot.Length()) || !b.fit(since, at) || !b.free(open-lead, at) {
			continue // There is a reason, or there may be one.
		}
		w.demands.Passed++
		due := open + time.Duration(h.options.Priority+1)*step + off + w.claiming()
		if at > due {
			w.violate("seq %d of %v, of priority %d, takes the slot from %v, and %v, of priority %d, could have claimed it %v before: nothing kept it",
				r.Seq, p, r.Priority, start, b, h.options.Priority, shown(at-due))
		}
	}
}

// claiming bounds the time of a claim from its turn on if nothing goes wrong: asking for the time,
// reading the head, appending, and once more reading the record that came first and appending.
func (w *world) claiming() time.Duration {
	return 5*(2*w.o.Faults.Latency+4*round) + 10*time.Millisecond
}

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
