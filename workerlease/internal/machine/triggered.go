package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// This file is what records say of triggers.

// doneIn reports that the work of the slot of a record is done, by what the head repeats.
func (c *Config) doneIn(by Carried, r store.Record) bool {
	slot := slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	switch {
	case r.Triggered():
		return !store.Triggers(by.Orders, r.SlotStart)
	case !c.Trigger.IsZero():
		return c.Rules.IsDone(by, slot, nil)
	}
	return c.IsDone(by, slot)
}

// takenBack reports that the trigger isn't in a head any more though its run has only ended now: an operator has taken it back
// meanwhile, or it was over. What came of the run is recorded all the same.
func (f facts) takenBack(head store.Record) bool {
	return !f.m.Trigger.IsZero() && head.Claim == f.s.Closing.Claim && head.Kind != store.KindDone
}

// orders are those that the next record repeats: of the trigger that is served also if its time is over, up to when its work is.
func (f facts) orders() string {
	return repeated(f.s.View.Carried.Orders, f.at.Now.Earliest, f.m.Trigger.Order.At)
}

// settles takes the trigger out of the orders of a record that says that its run is done, or given up. The record may stand on the
// term of another: the run's lease is over, or its worker has died, and the next slot has begun. Who made the run knows the trigger by
// when it was given: it may have got another end meanwhile.
func (f facts) settles(r *store.Record) {
	o, told := r.Outcome()
	serves := !f.m.Trigger.IsZero() && f.m.Trigger.Order.At.Equal(o.SlotStart)
	if told && (o.Result == store.Succeeded || o.GivenUp) && (serves || asksFor(r.Orders, o)) {
		r.Orders = f.m.Rules.Settle(r.Orders, o.SlotStart)
	}
}

// asksFor reports that orders have the trigger of the run that an outcome is of.
func asksFor(orders string, of store.Outcome) bool {
	all, err := store.ParseOrders(orders)
	return err == nil && slices.ContainsFunc(all, func(o store.Order) bool {
		return o.Kind == store.OrderTrigger && o.At.Equal(of.SlotStart) && o.Until.Equal(of.SlotEnd)
	})
}

// counts has a record of another slot than the one in the head say in a trigger how often that one's run was tried, and when it may be
// again: a record shows the attempts at its own slot alone.
func (f facts) counts(r *store.Record) {
	c := &f.s.View.Carried
	if c.Triggered.IsZero() || c.Attempt == 0 || r.SlotStart.Equal(c.Slot) {
		return
	}
	all, err := store.ParseOrders(r.Orders)
	if err != nil {
		return
	}
	i := slices.IndexFunc(all, func(o store.Order) bool { return o.Kind == store.OrderTrigger && o.At.Equal(c.Slot) })
	if i < 0 {
		return
	}
	o, failed := &all[i], c.Attempt-c.Spared
	o.Attempts, o.Spared, o.Again = c.Attempt, c.Spared, time.Time{}
	if length := o.Until.Sub(o.At); c.Failed && failed > 0 {
		o.Again = c.Triggered.Add(f.m.Rules.Retry(f.m.MinRetry(length), failed, length))
	}
	text, err := store.FormatOrders(all)
	if err != nil { // There is no room for all of that.
		o.Attempts, o.Spared, o.Again = failed, 0, time.Time{}
		text, err = store.FormatOrders(all)
	}
	if err == nil {
		r.Orders = text
	}
}

// askedBy is the trigger whose slot this is; the zero Order if there is none.
func askedBy(orders string, slot slots.Slot) store.Order {
	all, _ := store.ParseOrders(orders)
	for _, o := range all {
		if o.Kind == store.OrderTrigger && o.At.Equal(slot.Start) && o.Until.Equal(slot.End) {
			return o
		}
	}
	return store.Order{}
}
