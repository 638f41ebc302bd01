package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
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
	// The operator has paused the type for eight hours, and resumes after ten minutes. Nobody looks before the next slot.
	{
		name: "the end of an order is not looked for", rule: "HearAgain", regime: operatedLong,
		instead: func(time.Duration) time.Duration { return 24 * time.Hour }, as: "after the order ended",
	},
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

// operatedLong: in slots of a quarter of an hour, in which much is lost if the end of an order isn't heard.
func operatedLong(seed int64) sim.Options {
	o := operated(seed)
	change(&o, func(_ int, w *workerlease.Options) { w.LeaseInterval = 15 * time.Minute })
	return o
}

// triggerVariants are careless about the runs that operators ask for.
var triggerVariants = []variant{
	// w0 has made the report that was asked for, and says so. The order stands in its record, and w1 makes it again.
	{
		name: "what was asked for is asked for as long as its time lasts", rule: "Settle", regime: asked,
		instead: func(orders string, _ time.Time) string { return orders }, as: "repeats the order for it",
	},
	// w0 has failed at its slot, which may be tried once. It runs for an operator, and w1 tries the slot.
	{
		name: "attempts are forgotten after a run that was asked for", rule: "Closes", regime: asked,
		instead: func(time.Time, slots.Slot) bool { return false }, as: "MaxAttempts is",
	},
	// w0's run takes longer than its order's time. w1 knows that it goes on by the slot in the head, and repeats the order because of that:
	// it has read it an hour ago.
	{
		name: "whatever stands on the term of a run repeats the order for it", rule: "Record.Orders", regime: asked,
		around: sending(func(r *store.Record) {
			if note := r.Kind == store.KindDone || r.Kind == store.KindOutcome; note && r.Triggered() && r.Orders == "" && !r.FixedAt.Before(r.SlotEnd) {
				r.Orders, _ = store.FormatOrders([]store.Order{{Kind: store.OrderTrigger, At: r.SlotStart, Until: r.SlotEnd}})
			}
		}), as: "brings an order",
	},
	// w0 dies in the first of the two runs that an operator has asked for at most. w1 runs the next slot, and then begins with the first.
	{
		name: "how often a run was tried is forgotten with the next slot", rule: "Record.Orders", regime: asked,
		around: sending(func(r *store.Record) {
			if all, err := store.ParseOrders(r.Orders); err == nil && r.Kind == store.KindGrant {
				for i := range all {
					all[i].Attempts = 0
				}
				r.Orders, _ = store.FormatOrders(all)
			}
		}), as: "says that a run was tried 0 times",
	},
}

// asked: operators ask for runs beside the slots of a job, whose workers die and can't reach the store.
func asked(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 6 * time.Hour, Triggers: 5 * time.Minute, Hints: true, Task: sim.DefaultTask,
		Faults: sim.Faults{Latency: 10 * time.Millisecond, Restarts: 30 * time.Minute, Outages: 2 * time.Hour, LostReply: 0.05},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.LeaseInterval, w.Priority, w.Job = 10*time.Minute, n, &workerlease.Job{MaxAttempts: 1}
		}),
	}
}

// saidVariants take what is said of a term for another one, or for none.
var saidVariants = []variant{
	// w0's work has failed, and it has released the slot. w1 takes over, and reports that w0 has died.
	{
		name: "who releases its slot has died", rule: "Died", regime: hopelessAfterAWhile, instead: func(store.Record, bool) bool { return true }, as: "says that a worker has died which has released",
	},
	// w0 and w1 are a group. w0 says that its work has failed. w1 is started again at noon, reads that, and idles up to midnight.
	{name: "what is said of a lease hides it", rule: "Granted", regime: failingTogether(10 * time.Minute), instead: func(head store.Record) (store.Record, bool) {
		return head, head.Kind == store.KindGrant
	}, as: "has not joined"},
	// w2 holds its slot up to 12:07. w0 has the next one for its group, up to 12:10, and says what came of the one before.
	// w1 starts, reads that at 12:06, and works beside w2: its slot began at 12:05.
	{name: "a term begins with the slot of what is said of it", rule: "Granted", regime: failingTogether(7*time.Minute, 5*time.Minute), instead: func(head store.Record) (store.Record, bool) {
		grant, ok := standard.Granted(head)
		if head.Kind != store.KindGrant && ok {
			grant.WindowStart = grant.SlotStart
		}
		return grant, ok
	}},
	// A job has failed five times, and is to be tried again in two minutes. An operator drains another host, and it is tried at once.
	{name: "an order ends the wait for the next attempt", rule: "GivenBack", regime: hopelessUnderOrders, instead: func(head store.Record) bool {
		return head.Kind == store.KindRelease
	}, audit: impatiently},
}

// failingTogether is a run of six workers with slots of these lengths, in turn, of which most are a group, and whose code fails in each slot.
func failingTogether(lengths ...time.Duration) regime {
	return func(seed int64) sim.Options {
		o := together(seed)
		change(&o, func(n int, w *workerlease.Options) { w.LeaseInterval = lengths[n%len(lengths)] })
		o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
			cb := sim.DefaultCallbacks(p)
			inner := cb.LeaseAllocated
			cb.LeaseAllocated = func(ctx context.Context, l workerlease.Lease) {
				l.FailedWith(errors.New("no"))
				inner(ctx, l)
			}
			return cb
		}
		return o
	}
}

// hopelessUnderOrders: a job fails each time, workers start in mid-slot, and operators give orders.
func hopelessUnderOrders(seed int64) sim.Options {
	o := hopeless(seed)
	o.Orders, o.Faults.Restarts = 4*time.Minute, 10*time.Minute
	change(&o, func(_ int, w *workerlease.Options) {})
	return o
}

// hopelessAfterAWhile: a job fails each time, after five minutes.
func hopelessAfterAWhile(seed int64) sim.Options {
	o := hopeless(seed)
	o.Task = func(p *sim.Process) workerlease.Task {
		return func(ctx context.Context, l workerlease.Lease) error {
			p.Work(l)
			_ = waits(ctx, 5*time.Minute)
			return errors.New("hopeless")
		}
	}
	return o
}

// impatiently reports an attempt that came sooner than MinRetry after one that had failed.
func impatiently(r *sim.Result) []string {
	var released store.Record // the newest release, with the attempt that it ended
	for _, x := range r.Records["sim"] {
		switch {
		case x.Kind == store.KindRelease:
			released = x
		case x.Kind != store.KindGrant || x.Attempt < 3 || x.Attempt != released.Attempt+1 || !x.SlotStart.Equal(released.SlotStart):
		case x.WindowStart.Sub(released.WindowEnd) < standard.Retry(10*time.Second, released.Attempt, 2*time.Hour):
			return []string{fmt.Sprintf("at %v: attempt %d comes %v after one that has failed", sinceBegin(x.WindowStart), x.Attempt, x.WindowStart.Sub(released.WindowEnd))}
		}
	}
	return nil
}
