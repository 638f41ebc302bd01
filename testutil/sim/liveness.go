package sim

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// guards is the first lane in which the world itself looks, which no process uses. mostGuards
// is the number of such lanes.
const guards, mostGuards = 1000, 20

// guard checks liveness for the slots of one worker: at each boundary, a little after it, and
// after each outage. Workers with the same slots share one guard.
func (w *world) guard(h *host, n int) {
	p := &Process{world: w, lanes: time.Duration(guards+n) * lanes}
	slot, outages := h.schedule.Next(w.origin), w.server.outages
	var after time.Duration // the check for the first of outages
	for began, known := false, false; ; {
		start, late := w.time(slot.Start), w.late(slot.Length())
		at := start
		if began {
			at += late
		}
		if len(outages) > 0 && !known {
			after, known = w.after(h, outages[0]), true
		}
		outage := known && after < at
		if outage {
			at = after
		}
		now := w.now()
		if at >= w.o.Length {
			return
		}
		if at > now {
			time.Sleep(p.slot(at, lifeLane) - now)
		}
		switch {
		case outage:
			if at >= now { // Otherwise it is too late: another slot's check came first.
				w.lookAfter(h, outages[0])
			}
			outages, known = outages[1:], false
		case !began:
			w.lookAt(h, start, slot.Length(), false)
			began = true
		default:
			if late < slot.Length()/2 {
				w.lookAt(h, start, slot.Length(), true)
				w.lookCleared(h)
				w.lookSpent(h, start, slot.Length())
				w.lookPreferred(h, start, slot.Length())
			}
			slot, began = h.schedule.Next(slot.Start), false
		}
	}
}

// peers are the running processes of workers with the same slots. The caller holds world.mu.
func (w *world) peers(h *host) (out []*Process) {
	for _, o := range w.hosts {
		if o.plain && o.interval == h.interval && o.options.WorkerType == h.options.WorkerType && o.running != nil {
			out = append(out, o.running)
		}
	}
	return out
}

// after is by when some worker must have the slot after an outage. Workers try again after
// their backoff and then go by their turns. If claims for the next slot are open by then, that
// slot counts.
func (w *world) after(h *host, down outage) time.Duration {
	d := h.interval
	backoff, lead := time.Duration(0), w.leadOf(down.to)
	for _, o := range w.hosts {
		most := o.options.MaxBackoff
		if most == 0 {
			most = max(5*time.Second, o.options.MinBackoff)
		}
		backoff = max(backoff, most)
	}
	late := w.late(d + down.to - down.from)
	by := down.to + min(backoff, d/8) + lead + late
	if left := w.time(h.schedule.At(w.origin.Add(by)).End) - by; left < lead+late {
		by += left
	}
	return by + late
}

// leadOf is the longest lead of the slots after a true time.
func (w *world) leadOf(at time.Duration) (longest time.Duration) {
	for _, h := range w.hosts {
		if h.plain {
			lead, _ := h.lead(h.schedule.Next(w.origin.Add(at)))
			longest = max(longest, lead)
		}
	}
	return longest
}

// late bounds the time until every healthy process knows that a time has come and has acted,
// if it last asked for the time this long ago.
func (w *world) late(age time.Duration) time.Duration {
	f := w.o.Faults
	half := f.Skew + f.Latency + f.Distance/2 + f.StampAge/2 + age*11/10000 + 3*time.Millisecond
	return 2*half + w.claiming() + 3*f.Distance // which a claim that isn't planned takes
}

// has reports whether some landed grant was in force at any moment of a stretch of true time.
// Grants of the given token don't count, unless it is 0. The grant may be released by now: a
// released slot is not claimed again. The caller holds world.mu.
func (w *world) has(l *ledger, from, to time.Duration, but int64) bool {
	for i := len(l.list) - 1; i >= 0 && i >= len(l.list)-1000; i-- {
		r := l.list[i]
		if w.planted[r.Claim] || r.Seq > store.MaxSeq || r.Token == but {
			continue
		}
		if r.Kind == store.KindGrant && w.time(r.WindowStart) <= to && w.time(r.WindowEnd) > from {
			return true
		}
	}
	return false
}

// lookAfter checks that a slot is taken by the time by which it must be after an outage.
func (w *world) lookAfter(h *host, down outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := h.interval
	now, since := w.now(), down.from-d
	l := w.ledger(h.options.WorkerType)
	for _, e := range []outages{w.server.elections, w.server.votes} {
		if i := e.after(since); w.beyond || w.mixed() || i < len(e) && e[i].from <= now {
			return
		}
	}
	if !w.up(down.to, now) || !w.up(since, down.from-1) || !w.undisturbed(l, since) || w.ordered(l, since) {
		return
	}
	if slices.ContainsFunc(w.hosts, func(h *host) bool { return h.options.FailoverWithin > 0 || h.options.Job != nil }) {
		return
	}
	for _, p := range w.peers(h) {
		if !w.settled(p, l, now-unsettled*d) || !p.fit(since, now) || !p.free(since, now) {
			continue
		}
		w.demands.Outages++
		if !w.has(l, now, now, 0) {
			w.violate("nobody has the slot, %v after an outage until %v, and nothing kept %v from claiming it", now-down.to, down.to, p)
		}
		return
	}
}

// released reports whether a term that was released ends in a stretch of true time. Nobody claims what
// comes after it before its end has surely passed, which takes up to twice the uncertainty, and a
// claim from then on begins when that has surely come: as much later once more. The caller holds
// world.mu.
func (w *world) released(l *ledger, from, to time.Duration) bool {
	for i := len(l.list) - 1; i >= 0 && i >= len(l.list)-10; i-- {
		if r := l.list[i]; r.Kind == store.KindRelease && w.time(r.WindowEnd) > from && w.time(r.WindowEnd) <= to {
			return true
		}
	}
	return false
}

// lookAt checks that the slot that begins at a true time is taken. It demands that now of the
// processes whose turns are over, and of all once they can know that the slot has begun.
func (w *world) lookAt(h *host, start, d time.Duration, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	l := w.ledger(h.options.WorkerType)
	heard, looked := start-unsettled*d, false
	if w.mixed() {
		heard = 0 // The slots of others may be longer and end within the lead.
	}
	for _, p := range w.peers(h) {
		o, off := p.options, p.health.uncertainty(start)
		lead, step := p.host.lead(h.schedule.At(w.origin.Add(start)))
		since := start - lead - d
		due := start - lead + time.Duration(o.Priority+1)*step + off + w.claiming()
		if w.beyond || !w.up(since, now) || !w.undisturbed(l, since) || w.barredSince(l, since) || !all && w.ordered(l, since-d) ||
			o.Job != nil && (o.Job.CatchUp != 0 || o.FailoverWithin == 0) || o.FailoverWithin > 0 && o.FailoverWithin < 8*off+4*p.margin ||
			!all && (w.mixed() || due > now || w.released(l, start-4*off-w.claiming(), start)) ||
			o.Job != nil && !doneStart(l.head()).Before(w.origin.Add(start)) || // by a slot that starts later, or with it
			!w.settled(p, l, heard) || !p.fit(since, now) || !p.free(start-lead-off, start-2*off-p.margin) {
			continue
		}
		if !looked {
			w.demands.Boundaries++
			looked = true
		}
		// The slot also counts as taken if a part of it has ended by now that was not extended. What
		// follows that part is checked elsewhere.
		if !w.has(l, start, now, 0) {
			w.violate("nobody has the slot from %v, and nothing kept %v from claiming it", start, p)
			return
		}
		if all {
			w.lookJoined(p, l, start)
		}
	}
}

// lookJoined checks that a process works under the lease that its group has for the slot that
// begins at a true time. The caller holds world.mu.
func (w *world) lookJoined(p *Process, l *ledger, start time.Duration) {
	r := l.head()
	if p.options.Group == "" || r.Group != p.options.Group || r.Kind != store.KindGrant || w.time(r.WindowStart) != start ||
		l.landedAt[r.Seq] > start || w.now() > w.time(r.WindowEnd)-p.margin-w.late(time.Minute) || !p.free(start, w.now()) {
		return
	}
	// A lease that follows one of a longer slot is joined long before it begins.
	if w.now() < start+2*p.health.uncertainty(w.now()) {
		return
	}
	// A worker that finds the slot taken doesn't look again whether it was released.
	if before, ok := l.below(r.Seq); ok && before.Kind == store.KindRelease && time.Duration(p.readAt.Load()) < l.landedAt[before.Seq] {
		return
	}
	w.demands.Joined++
	if p.leases[r.Token] == nil {
		w.violate("%v does not work under token %d, which its group has from %v on, and nothing keeps it", p, r.Token, start)
	}
}

// lookBorn checks later that a process that has just started has joined its group, if that has
// a lease now.
func (w *world) lookBorn(p *Process) {
	if p.options.Group == "" || w.beyond {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, late := w.now(), w.late(time.Minute)
	r := w.ledger(p.options.WorkerType).grant()
	wait := late + 100*time.Millisecond
	if r.Kind != store.KindGrant || r.Group != p.options.Group || w.planted[r.Claim] ||
		w.time(r.WindowStart) > now-late || w.time(r.WindowEnd) < now+wait+late+p.margin {
		return
	}
	w.later(p, lookLane, wait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l := w.ledger(r.WorkerType)
		if l.grant().Seq != r.Seq || !w.up(p.began, w.now()) || !p.fit(p.began, w.now()) {
			return
		}
		w.demands.Joined++
		if p.leases[r.Token] == nil {
			w.violate("%v started at %v, and has not joined its group, which has token %d", p, p.began, r.Token)
		}
	})
}

// lookCleared checks that poison is superseded once some process has watched it for long
// enough.
func (w *world) lookCleared(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.plantings)
	if w.beyond || n == w.judged || w.plantings[n-1].Kind != Poison && w.plantings[n-1].Kind != Foreign || w.plantings[n-1].Record.WorkerType != h.options.WorkerType {
		return
	}
	x, now, l := w.plantings[n-1], w.now(), w.ledger(h.options.WorkerType)
	d := h.interval
	bound, since := d, x.At
	for i := len(l.list) - 1; i >= 0; i-- {
		r := l.list[i]
		if r.Seq > x.Record.Seq {
			continue
		}
		if r.CheckEnvelope() == nil {
			bound = max(bound, min(r.WindowEnd.Sub(r.WindowStart), 24*time.Hour))
		}
		since = max(since, l.landedAt[r.Seq])
		// The record below counts, too: some worker may be unable to obey it.
		if r.Seq == 1 || !w.planted[r.Claim] {
			break
		}
		// It is ignored until the ledger has reached it, or the poison below it.
		if l.landedAt[r.Seq-1] == 0 {
			return
		}
	}
	// A worker sees it in the first lead, and supersedes it in a later one.
	by := since + bound + 5*time.Minute + bound/500 + 3*d + w.late(d)
	if now < by {
		return
	}
	for _, p := range w.peers(h) {
		// A worker that has a longer slot, or whose group has, doesn't look.
		has := p.lease != nil && p.lease.End > since+d
		if !has && now >= by+2*p.health.lag(now) && p.fit(since-d, now) && p.free(since-d, now) && w.up(since-d, now) {
			w.demands.Cleared++
			w.judged = n
			if l.head().Claim == x.Record.Claim {
				w.violate("poison that was planted in seq %d at %v still stands, and nothing kept %v from superseding it", x.Record.Seq, x.At, p)
			}
			return
		}
	}
}
