package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// desk is the store as an operator reaches it: at once, and with the right time. What is read may be
// old when the order is appended, because workers append meanwhile.
type desk struct {
	w *world
	p *Process // whose lane it uses; it runs no worker
}

var _ store.Ledger = desk{}

func (desk) Init(context.Context) error  { return nil }
func (desk) Close(context.Context) error { return nil }

func (d desk) Append(_ context.Context, r store.Record) error {
	return d.w.append(d.p, r, d.w.now(), &call{})
}

func (d desk) Get(_ context.Context, workerType string, seq int64) (store.Record, error) {
	return d.w.get(workerType, seq, &call{})
}

// Tail takes up to a second, so that claims come between it and the append.
func (d desk) Tail(_ context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records := d.w.tail(workerType, limit, &call{})
	at := d.w.now()
	r := newRand(d.w.o.Seed, forOrders, 1, int64(at))
	time.Sleep(d.p.slot(at+r.upTo(time.Second)+1, lifeLane) - at)
	return records, store.Stamp{}, nil
}

func (desk) Trim(context.Context, string, int64) (int, error) { return 0, errors.ErrUnsupported }

func (d desk) WorkerTypes(context.Context) ([]string, error) { return d.w.workerTypes(), nil }

func (d desk) Now(context.Context) (store.Stamp, error) {
	return store.Stamp{Time: d.w.origin.Add(d.w.now()).Truncate(time.Millisecond), Granularity: time.Millisecond, Server: "desk"}, nil
}

// desk is the desk of an operator of the first worker's type, who has a lane.
func (w *world) desk(lane time.Duration) (operate.Desk, *Process) {
	p := &Process{world: w, options: w.hosts[0].options, lanes: lane * lanes, leases: map[int64]*Lease{}}
	var ledger store.Ledger = desk{w, p}
	if w.o.Desk != nil {
		ledger = w.o.Desk(ledger)
	}
	return operate.Desk{Ledger: ledger, Clock: clock.New(), Rand: randomness{p}}, p
}

// operate gives orders at random, one after the other, to the first worker's type.
func (w *world) operate() {
	o := w.hosts[0].options
	orders, p := w.desk(1022)
	r := newRand(w.o.Seed, forOrders, 0, 0)
	d := w.hosts[0].interval
	for {
		at := w.now()
		next := at + r.span(w.o.Orders/4, 2*w.o.Orders)
		if next >= w.o.Length {
			return
		}
		time.Sleep(p.slot(next, lifeLane) - at)
		long := r.span(time.Second, 3*d)
		until := w.origin.Add(w.now() + long)
		if r.chance(0.2) {
			until = w.hosts[0].schedule.At(until).End // at a boundary
		}
		now, by, name := r.chance(0.4), fmt.Sprint("operator ", r.below(3)), o.WorkerType
		target := w.hosts[r.below(len(w.hosts))].options.InstanceID
		if r.chance(0.1) {
			target = "nobody"
		}
		var err error
		ctx := context.Background()
		switch r.below(10) {
		case 0, 1:
			_, err = orders.Give(ctx, operate.Order{Kind: store.OrderPause, WorkerType: name, Until: until, Now: now, InstanceID: by})
		case 2:
			host := "" // that of all workers
			if r.chance(0.3) {
				host = elsewhere
			}
			_, err = orders.Give(ctx, operate.Order{Kind: store.OrderDrain, WorkerType: name, Target: host, Until: until, Now: now, InstanceID: by})
		case 3:
			_, err = orders.End(ctx, operate.Order{WorkerType: name, InstanceID: by})
		case 4:
			kind := []store.OrderKind{store.OrderPrefer, store.OrderDrain, store.OrderRelease}[r.below(3)]
			_, err = orders.End(ctx, operate.Order{WorkerType: name, Kind: kind, InstanceID: by})
		case 5, 6:
			_, err = orders.Give(ctx, operate.Order{Kind: store.OrderRelease, WorkerType: name, InstanceID: by})
		default:
			_, err = orders.Give(ctx, operate.Order{Kind: store.OrderPrefer, WorkerType: name, Target: target, Until: w.origin.Add(w.now() + 4*d + long), Now: now, InstanceID: by})
		}
		switch {
		case err == nil:
			w.tally.strike(Ordered)
		case errors.Is(err, operate.ErrNoTerm), errors.Is(err, workerlease.ErrOptions), errors.Is(err, operate.ErrHeadMoved), errors.Is(err, operate.ErrUnfitHead):
		default:
			w.violate("an operator fails: %v", err)
		}
	}
}

// ordersSince are the orders that were in force at some time since a true one, each once. The caller holds
// world.mu.
func (w *world) ordersSince(l *ledger, since time.Duration) (all []store.Order) {
	if !w.orders() {
		return nil
	}
	for _, r := range slices.Backward(l.list) {
		for _, o := range r.OrdersAt(w.origin.Add(since)) {
			if !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
		if l.landedAt[r.Seq] < since {
			break
		}
	}
	return all
}

// orders reports that operators give any.
func (w *world) orders() bool { return w.o.Orders > 0 || w.o.Triggers > 0 }

// ordered reports whether any order was in force since a true time, or has ended since. The caller holds
// world.mu.
func (w *world) ordered(l *ledger, since time.Duration) bool { return len(w.ordersSince(l, since)) > 0 }

// barredSince reports whether workers could be kept from claiming since a true time. The caller holds
// world.mu.
func (w *world) barredSince(l *ledger, since time.Duration) bool {
	return slices.ContainsFunc(w.ordersSince(l, since), bars)
}

// prefersSince reports whether any worker was preferred since a true time. The caller holds world.mu.
func (w *world) prefersSince(l *ledger, since time.Duration) bool {
	return slices.ContainsFunc(w.ordersSince(l, since), func(o store.Order) bool { return o.Kind == store.OrderPrefer })
}

// bars reports that an order keeps workers from claiming.
func bars(o store.Order) bool {
	return o.Kind == store.OrderPause || o.Kind == store.OrderDrain && o.Target != elsewhere
}

// elsewhere is a host that no worker is on.
const elsewhere = "elsewhere"

// auditOrders checks a record against the orders in the one that it was appended to: it repeats them as long
// as they may be in force, and is no claim that they forbid. The caller holds world.mu.
func (w *world) auditOrders(p *Process, r, before store.Record, at time.Duration) {
	if !w.orders() || w.beyond || r.Kind == store.KindOrder {
		return
	}
	repeated, _ := store.ParseOrders(r.Orders)
	given, _ := store.ParseOrders(before.Orders)
	for _, o := range repeated {
		i := slices.IndexFunc(given, func(g store.Order) bool { return same(g, o) })
		switch {
		case i < 0:
			w.violate("seq %d of %v, a %s, brings an order that seq %d doesn't have: %v", r.Seq, p, r.Kind, before.Seq, o)
		case !o.InForce(r.FixedAt) && !serves(r, o):
			w.violate("seq %d of %v, a %s, repeats an order that is over: %v", r.Seq, p, r.Kind, o)
		case o.Attempts != attempts(given[i], r, before):
			w.violate("seq %d of %v, a %s, says that a run was tried %d times, after seq %d: %v", r.Seq, p, r.Kind, o.Attempts, before.Seq, o)
		case settles(r, o):
			w.violate("seq %d of %v, a %s, says that a run is done or given up, and repeats the order for it: %v", r.Seq, p, r.Kind, o)
		}
	}
	kept := r.OrdersAt(w.origin.Add(at))
	// The run of a job goes on after its slot, be it late or long. So does one that was asked for, after the time in which it
	// could begin, which is no slot.
	goesOn := r.Triggered() || r.Attempt > 0 && r.SlotStart.Equal(before.SlotStart)
	into := r.Claim != before.Claim || before.Kind == store.KindRelease || !goesOn && !r.WindowStart.Before(before.SlotEnd)
	for _, o := range before.OrdersAt(w.origin.Add(at)) {
		if !slices.ContainsFunc(kept, func(k store.Order) bool { return same(k, o) }) && !settles(r, o) {
			w.violate("seq %d of %v, a %s, doesn't repeat the order of seq %d: %v", r.Seq, p, r.Kind, before.Seq, o)
		}
		if r.Kind == store.KindGrant && bars(o) && into {
			w.violate("seq %d of %v claims the slot from %v, and lands in a pause: %v", r.Seq, p, w.time(r.SlotStart), o)
		}
		w.auditExtended(p, r, before, o)
	}
}

// lookPreferred checks that the preferred worker has the slot that began at a true time, if the order is as old
// as two slots, nothing else was ordered since, and nothing kept the worker from claiming. The caller doesn't hold
// world.mu.
func (w *world) lookPreferred(h *host, start, d time.Duration) {
	if w.o.Orders == 0 || w.beyond || w.mixed() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, l := w.now(), w.ledger(h.options.WorkerType)
	lead, step := h.lead(slots.Slot{Start: w.origin.Add(start), End: w.origin.Add(start + d)})
	since := start - 2*d - 2*lead
	all := w.ordersSince(l, since)
	if len(all) != 1 || all[0].Kind != store.OrderPrefer || w.time(all[0].At) > since || !all[0].InForce(w.origin.Add(now)) || w.tripped(l, since) {
		return
	}
	for _, p := range w.peers(h) {
		off := p.health.uncertainty(start)
		if p.options.InstanceID != all[0].Target || p.options.Group != "" || p.options.Job != nil || p.options.Policy != nil ||
			!w.up(since, now) || !w.undisturbed(l, since) || !w.settled(p, l, start-unsettled*d) || !p.fit(since, now) || !p.free(start-lead-off, start-2*off-p.margin) ||
			p.options.FailoverWithin > 0 && p.options.FailoverWithin < 8*off+4*p.margin {
			continue
		}
		w.demands.Preferred++
		for _, r := range slices.Backward(l.list) {
			if r.Kind != store.KindGrant || w.time(r.WindowStart) > now || w.time(r.WindowEnd) <= now {
				continue
			}
			// Where turns are hardly longer than claims take, another one may come first.
			if sure := step >= 2*off+w.claiming(); sure && r.InstanceID != all[0].Target {
				w.violate("%s has the slot from %v by seq %d, and %v is preferred since %v: nothing kept it", r.InstanceID, start, r.Seq, p, w.time(all[0].At))
			}
			return
		}
		return
	}
}

// tripped reports whether an order ended before its time since a true one. The caller holds world.mu.
func (w *world) tripped(l *ledger, since time.Duration) bool {
	for _, r := range slices.Backward(l.list) {
		if l.landedAt[r.Seq] < since {
			return false
		}
		if r.Kind == store.KindOrder {
			return true
		}
	}
	return false
}
