package workerlease_test

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// leverVariants are careless about the orders of operators. No two holders work at once for that, but in the two
// that break R5 and R9.
var leverVariants = []variant{
	// An operator pauses the type to move a database. w0 claims the next slot as ever, and writes to the old one.
	{name: "a pause is ignored", rule: "Obey", regime: operated, instead: func(orders []store.Order, host string) machine.Levers {
		l := standard.Obey(orders, host)
		l.Pause = time.Time{}
		return l
	}, as: "lands in a pause"},
	// The database is to be moved now. The operator waits for w0 to stop, and w0 works up to the end of its slot.
	{name: "an order to go at once is ignored", rule: "Obey", regime: operated, instead: func(orders []store.Order, host string) machine.Levers {
		l := standard.Obey(orders, host)
		l.PauseHeld, l.DrainHeld, l.Release, l.PreferNow = false, false, "", false
		return l
	}, as: "is to go"},
	// All hosts but one are drained. That one drains itself, too.
	{name: "each host is drained", rule: "Obey", regime: operated, instead: func(orders []store.Order, _ string) (l machine.Levers) {
		for _, o := range orders {
			if of := standard.Obey([]store.Order{o}, o.Target); !of.Drain.IsZero() {
				l.Drain, l.DrainHeld = of.Drain, of.DrainHeld
			}
		}
		return l
	}, as: "no order is about it"},
	// w0 has the highest priority, reads the preference at its turn, and claims. w5 reads of it three seconds later.
	{name: "the news of a preference is ignored", rule: "Obey", regime: operated, instead: func(orders []store.Order, host string) machine.Levers {
		l := standard.Obey(orders, host)
		l.PreferAt = time.Time{}
		return l
	}, as: "before all turns are over"},
	// w0 extends its lease within the slot after the pause, and its record says nothing of it. w1 reads that.
	{name: "an order is in its own record only", rule: "Carry", regime: operated, instead: func(head store.Record) machine.Carried {
		c := standard.Carry(head)
		c.Orders = ""
		return c
	}, as: "doesn't repeat the order"},
	// w0 has released its lease, as it was asked to. w1 has the rest of the slot, reads the order, and steps down.
	{name: "who holds the lease is asked to release it", rule: "Asks", regime: operated, instead: func(machine.Levers, machine.Term) bool { return true }, as: "no order is about it"},
	// w0's code takes a minute to return. w1 has what w0 has released, and both work.
	{name: "who is asked to release doesn't wait for its code", rule: "Await", regime: operated, instead: standard.Await &^ machine.Releasing, as: "while its code runs"},
	// The operator prefers w5, which has the lowest priority, because its host has the new disks. w0 has the slots.
	{name: "nobody makes room for the preferred worker", rule: "Precedence", regime: operated, instead: func(_ bool, p int, first bool, _ int) (int, bool) { return p, first }, as: "is preferred since"},
	// The record of an order has a claim of its own. w0 finds that the head is not its own any more.
	{name: "an order takes the term", rule: "Record.Claim", regime: operated, around: sending(func(r *store.Record) {
		if r.Kind == store.KindOrder {
			r.Claim = "0123456789abcdef"
		}
	}), as: "takes the term"},
}

// operated: operators give orders all the time, and code takes its time to return.
func operated(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 6, Length: 3 * time.Hour, Orders: 4 * time.Minute,
		Faults: sim.Faults{Latency: 10 * time.Millisecond, Blocked: 0.3},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.LeaseInterval, w.FailoverWithin, w.Priority = 2*time.Minute, 20*time.Second, n
		}),
	}
}
