package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// mostTriggered is how long a run that an operator asks for may wait.
const mostTriggered = 20 * time.Minute

// trigger asks for runs of the first worker's type at random, one after the other.
func (w *world) trigger() {
	o := w.hosts[0].options
	orders, p := w.desk(1020)
	r := newRand(w.o.Seed, forTriggers, 0, 0)
	for {
		at := w.now()
		next := at + r.span(w.o.Triggers/4, 2*w.o.Triggers)
		if next >= w.o.Length {
			return
		}
		time.Sleep(p.slot(next, lifeLane) - at)
		_, err := orders.Give(context.Background(), operate.Order{
			Kind: store.OrderTrigger, WorkerType: o.WorkerType, For: r.span(time.Minute, mostTriggered), InstanceID: "operator",
		})
		switch {
		case err == nil:
			w.tally.strike(Ordered)
		case errors.Is(err, workerlease.ErrOptions), errors.Is(err, operate.ErrHeadMoved), errors.Is(err, operate.ErrUnfitHead), errors.Is(err, operate.ErrTooManyOrders):
		default:
			w.violate("an operator fails: %v", err)
		}
	}
}

// auditTriggered checks a grant of a run that an operator has asked for: the record before it has the order, and the run begins in
// its time. The caller holds world.mu.
func (w *world) auditTriggered(p *Process, r, before store.Record) {
	all, _ := store.ParseOrders(before.Orders)
	if !slices.ContainsFunc(all, func(o store.Order) bool { return asksFor(o, r.SlotStart, r.SlotEnd) && r.WindowStart.Before(o.Until) }) {
		w.violate("seq %d of %v is for the run that was asked for at %v, which is done, given up or over", r.Seq, p, w.time(r.SlotStart))
	}
}

// asksFor reports that an order asks for the run of a slot.
func asksFor(o store.Order, start, end time.Time) bool {
	return o.Kind == store.OrderTrigger && o.At.Equal(start) && o.Until.Equal(end)
}

// same reports that two records have one order, however often the run that it asks for was tried in between.
func same(a, b store.Order) bool {
	a.Attempts, a.Spared, a.Again = b.Attempts, b.Spared, b.Again
	return a == b
}

// triedBefore is the order for the run of a grant in the record before it, which says how often that was tried; zero without.
func triedBefore(r, before store.Record) store.Order {
	all, _ := store.ParseOrders(before.Orders)
	if i := slices.IndexFunc(all, func(o store.Order) bool { return asksFor(o, r.SlotStart, r.SlotEnd) }); i >= 0 {
		return all[i]
	}
	return store.Order{}
}

// attempts is what a record is to say in an order that the record before it has: how often its run was tried, if that one shows it, and
// this one doesn't.
func attempts(given store.Order, r, before store.Record) int {
	shown := before.Triggered() && given.Kind == store.OrderTrigger && given.At.Equal(before.SlotStart)
	if shown && before.Attempt > 0 && !r.SlotStart.Equal(before.SlotStart) {
		return before.Attempt
	}
	return given.Attempts
}

// settles reports that a record says that the run which an order asks for is done, or given up.
func settles(r store.Record, o store.Order) bool {
	out, told := r.Outcome()
	return told && asksFor(o, out.SlotStart, out.SlotEnd) && (out.Result == store.Succeeded || out.GivenUp)
}

// serves reports that a record is written for the run that an order asks for, or says what came of that. What changes no term repeats
// the slot in the head, whoever writes it; and who only tells that a worker has died doesn't make the run, unless it stands on one.
func serves(r store.Record, o store.Order) bool {
	out, told := r.Outcome()
	if slices.Contains(bookkeeping, r.Kind) {
		return told && asksFor(o, out.SlotStart, out.SlotEnd) && (out.Cause != store.WorkerDied || r.Triggered())
	}
	return r.Triggered() && asksFor(o, r.SlotStart, r.SlotEnd)
}

// noteTriggered notes a record by which a run that was asked for is done. The caller holds world.mu.
func (l *ledger) noteTriggered(r, before store.Record, at time.Duration) {
	if out, told := r.Outcome(); told && out.Result == store.Succeeded && store.Triggers(before.Orders, out.SlotStart) {
		l.jobs.asked = append(l.jobs.asked, doneBy{out.SlotStart, l.order, at})
	}
}

// auditAsked checks a call of a task for a run that was asked for: it isn't done. The caller holds world.mu.
func (w *world) auditAsked(p *Process, l workerlease.Lease, grant *landed) {
	w.demands.Asked++
	jobs := &w.ledger(l.WorkerType).jobs
	i := slices.IndexFunc(jobs.asked, func(d doneBy) bool { return d.start.Equal(l.Slot.Start) })
	if i < 0 {
		return
	}
	if d := jobs.asked[i]; grant.order != unordered && d.order < grant.order {
		w.violate("%v calls the task for the run that was asked for at %v, under token %d, and it was done by %v", p, w.time(l.Slot.Start), l.Token, d.at)
	}
}
