package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// heard is when a process first heard of an order, and in which record. It is news if it is a preference that
// was given later than all that the process had heard of: stale reads show older ones.
type heard struct {
	store.Order
	at   time.Duration
	seq  int64
	news bool
}

// hasHeard is when the process first heard of an order. The caller holds world.mu.
func (p *Process) hasHeard(o store.Order) (h heard, ok bool) {
	for _, h := range slices.Backward(p.orders) {
		if h.Order == o {
			return h, true
		}
	}
	return heard{}, false
}

// going is how long after a process has read that it is to go at once its code is told so: it may read more
// records first.
func (w *world) going() time.Duration { return 2*w.trip() + 10*time.Millisecond }

// hearsOrders notes the orders in a record that the process has read as the newest one. If one tells it to go at once,
// a look follows, after a time.
func (p *Process) hearsOrders(head store.Record, within time.Duration) {
	w, at := p.world, p.world.now()
	if w.o.Orders == 0 || w.beyond || p.dead.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.planted[head.Claim] || head.Defect != "" {
		return
	}
	for _, o := range head.OrdersAt(w.origin.Add(at - orderSlack)) {
		h, known := p.hasHeard(o)
		if !known {
			older := func(h heard) bool { return h.Kind != o.Kind || h.At.Before(o.At) }
			h = heard{o, at, head.Seq, o.Kind == store.OrderPrefer && !slices.ContainsFunc(p.orders, func(h heard) bool { return !older(h) })}
			p.orders = append(p.orders, h)
		}
		x := p.lease
		switch {
		case x != nil && x.lease.Triggered: // Its worker reads for itself, when it extends the lease.
		case x == nil || x.grant == nil || x.left || x.over() || head.Seq < x.grant.seq || !o.InForce(w.origin.Add(at)):
		case o.Kind == store.OrderPrefer && (known || !h.news):
		case p.sentAway(o, x.grant):
			w.later(p, lookLane, within, func() { p.mustGo(x, o, at, within > w.going()) })
		}
	}
}

// readsBack notes a record that the process has found at the key of its newest append. It may wait, and read the head,
// before it goes by that.
func (p *Process) readsBack(r store.Record) {
	p.world.mu.Lock()
	asked := p.askedAs == r.Seq && r.WorkerType == p.options.WorkerType
	p.world.mu.Unlock()
	if asked {
		p.hearsOrders(r, p.world.going()+p.patience)
	}
}

// orderSlack is how much longer than by true time an order may be in force to a process.
const orderSlack = time.Minute

// sentAway reports that an order tells the holder of a grant to go at once: the process that has it, or is to begin
// it. A preference does so once, when it is heard of.
func (p *Process) sentAway(o store.Order, g *landed) bool {
	switch o.Kind {
	case store.OrderPause:
		return o.Now
	case store.OrderDrain:
		return o.Now && o.Target == g.host
	case store.OrderRelease:
		return o.Target == g.claim && g.group == ""
	case store.OrderPrefer:
		return o.Now && o.Target != p.options.InstanceID && p.failover > 0 && g.group == ""
	default:
		return false
	}
}

// mustGo checks that a lease has ended whose holder has read at a true time that it is to go; calls says that it may
// have had to call the store since.
func (p *Process) mustGo(x *Lease, o store.Order, read time.Duration, calls bool) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	stalls := p.host.stalls
	i := stalls.after(read)
	if p.dead.Load() || p.leaving.Load() || (calls || w.o.Faults.SlowObserver > 0) && !(p.health.well(read) && w.up(read, w.now())) || i < len(stalls) && stalls[i].from <= w.now() {
		return
	}
	w.demands.Heeded++
	if !x.left && !x.over() {
		w.violate("%v goes on, and its worker has read at %v that it is to go: %v", x, read, o)
	}
}

// mustRelease checks later that the rest of a lease is released which has ended by an order, and whose code has
// returned before claims for the next slot are open: one that the worker makes then hides the term. The caller holds
// world.mu.
func (p *Process) mustRelease(x *Lease) {
	w, at, within := p.world, p.world.now(), 4*p.world.trip()+10*time.Millisecond
	byOrder := x.Why == workerlease.Paused || x.Why == workerlease.Drained || x.Why == workerlease.AskedToRelease
	if !x.over() || !byOrder || x.grant == nil || x.grant.group != "" || w.beyond || !p.host.plain {
		return
	}
	next := p.host.schedule.Next(w.origin.Add(at))
	if lead, _ := p.host.lead(next); min(x.End, w.time(next.Start)-lead)-at < 2*within+2*w.late(time.Minute) {
		return
	}
	since := at - p.host.interval
	w.later(p, lookLane, within, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.up(since, w.now()) || !p.fit(since, w.now()) {
			return
		}
		w.demands.Heeded++
		if !p.freed[x.Token] {
			w.violate("%v is over since %v, and its rest is not released", x, at)
		}
	})
}

// auditBegin checks, when code is called under a lease, that its worker has read no order by which it had to give
// the lease up. The caller holds world.mu.
func (w *world) auditBegin(x *Lease) {
	p := x.p
	if x.grant == nil || w.beyond || w.o.Faults.SlowObserver > 0 || len(p.host.stalls) > 0 {
		return
	}
	for _, h := range p.orders {
		held := h.Kind != store.OrderPrefer || h.news && h.at > x.Began
		if h.seq >= x.grant.first && h.at < w.time(h.Until) && h.at+w.going() < w.now() && held && p.sentAway(h.Order, x.grant) {
			w.violate("%v begins, and its worker has read at %v that it is to go: %v", x, h.at, h.Order)
		}
	}
}

// auditExtended checks that no window is added to a term after a record by which its holder has to go at once. So
// a holder goes, at the latest, at the end of the window that it has when such an order is given. The caller holds
// world.mu.
func (w *world) auditExtended(p *Process, r, before store.Record, o store.Order) {
	if r.Kind != store.KindGrant || r.Claim != before.Claim || before.Kind == store.KindRelease {
		return
	}
	x := p.leases[r.Token]
	h, _ := p.hasHeard(o)
	if x == nil || x.grant == nil || o.Kind == store.OrderPrefer && (!h.news || h.at <= x.Began) {
		return
	}
	w.demands.Heeded++
	if p.sentAway(o, x.grant) {
		w.violate("seq %d of %v extends a lease whose holder is to go: %v", r.Seq, p, o)
	}
}

// auditEnd checks that a lease which has ended by an order was meant by one that its worker has read. The caller
// holds world.mu.
func (w *world) auditEnd(x *Lease) {
	kinds := map[workerlease.Reason][]store.OrderKind{
		workerlease.Paused: {store.OrderPause}, workerlease.Drained: {store.OrderDrain},
		workerlease.AskedToRelease: {store.OrderRelease, store.OrderPrefer},
	}[x.Why]
	if kinds == nil || x.grant == nil || w.beyond {
		return
	}
	for _, h := range x.p.orders {
		ends := w.time(h.Until) + orderSlack
		if slices.Contains(kinds, h.Kind) && x.p.sentAway(h.Order, x.grant) && x.Ended <= ends && (h.Kind != store.OrderPrefer || h.news && h.at >= x.Began) {
			return
		}
	}
	w.violate("%v has ended, and no order is about it that its worker has read", x)
}

// whyOf is the reason of a lease's end by an order, given the cause of its context; empty: it was no order.
func whyOf(cause error) workerlease.Reason {
	switch {
	case errors.Is(cause, workerlease.ErrPaused):
		return workerlease.Paused
	case errors.Is(cause, workerlease.ErrDrained):
		return workerlease.Drained
	case errors.Is(cause, workerlease.ErrAskedToRelease):
		return workerlease.AskedToRelease
	}
	return ""
}

// auditNews checks, when a claim for a slot that has not begun is sent, that it comes after all turns, if another
// worker is preferred and the process has heard of that since its turn for the slot before. The caller holds world.mu.
func (w *world) auditNews(p *Process, r store.Record) {
	at, start := w.now(), w.time(r.SlotStart)
	if w.o.Orders == 0 || w.beyond || w.mixed() || !p.host.plain || at >= start || r.WorkerType != p.options.WorkerType {
		return
	}
	slot := slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	lead, _ := p.host.lead(slot)
	if p.failover > 0 {
		lead = min(lead, p.failover/2)
	}
	off := p.health.uncertainty(at)
	l := w.ledger(r.WorkerType)
	if time.Duration(p.back.Load()) > start || !w.settled(p, l, at-unsettled*slot.Length()) {
		return
	}
	for _, o := range r.OrdersAt(w.origin.Add(at + off)) {
		h, _ := p.hasHeard(o)
		// A claim of a rest may have come after all turns, also after an outage.
		since := start - 2*slot.Length()
		rests := p.failover > 0 || joins(p.options) || !p.fit(since, at) || !w.up(since, at) || w.barredSince(l, since)
		first := h.at > start-slot.Length()+off && (!rests || h.at >= start-lead+off)
		if !h.news || h.Target == p.options.InstanceID || !first {
			continue
		}
		step := priority.NewTurns(lead, p.options.Step, w.spread(p)).Step
		w.demands.News++
		if last := start - lead + priority.Lowest*step + step*63/64 - time.Millisecond; at+off < last {
			w.violate("%v claims the slot from %v in seq %d, %v before all turns are over, and has heard at %v that another is preferred: %v",
				p, start, r.Seq, shown(last-at), h.at, o)
		}
	}
}

// awaitHeard checks, when an order ends by which nobody claims, that some worker has what is left of the slot soon:
// workers that an order keeps from it look again within FailoverWithin, or a minute. The caller holds world.mu.
func (w *world) awaitHeard(by *Process, l *ledger, r, before store.Record, at time.Duration) {
	h := w.hosts[0]
	bars := func(r store.Record) bool { return slices.ContainsFunc(r.OrdersAt(w.origin.Add(at)), bars) }
	if w.o.Orders == 0 || w.beyond || w.mixed() || r.Kind != store.KindOrder || h.options.Job != nil || h.options.FailoverWithin == 0 || !bars(before) || bars(r) {
		return
	}
	slot := h.schedule.At(w.origin.Add(at))
	next := h.schedule.Next(w.origin.Add(at))
	lead, _ := h.lead(next)
	within := h.options.FailoverWithin + 2*lead + 2*w.late(time.Minute)
	since := w.time(slot.Start) - slot.Length()
	if at+within > w.time(next.Start)-lead {
		return
	}
	w.later(by, lookLane, within, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		now := w.now()
		if w.tripped(l, at+1) || !w.up(since, now) || !w.undisturbed(l, since) {
			return
		}
		for _, p := range w.peers(h) {
			if !w.settled(p, l, now-unsettled*slot.Length()) || !p.fit(since, now) || !p.free(at, now) {
				continue
			}
			w.demands.Heard++
			if !w.has(l, now, now, 0) {
				w.violate("nobody has the slot from %v, %v after the order ended in seq %d that kept %v from it", w.time(slot.Start), shown(now-at), r.Seq, p)
			}
			return
		}
	})
}
