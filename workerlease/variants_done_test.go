package workerlease_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// doneVariants are careless about what is done.
var doneVariants = []variant{
	// w0 is done with a slot of 5 min. w1 has slots of 1 min, and finds the next four done.
	{name: "what is done is a point in time", rule: "IsDone", regime: twoSchedules, instead: func(head machine.Carried, slot slots.Slot, _ slots.Schedule) bool {
		return !head.DoneUntil.IsZero() && !slot.End.After(head.DoneUntil)
	}, as: "nobody has the slot"},
	// w0 is done with a slot of 1 min, and the rest of the slot of 5 min in which that lies is free: w1 does it.
	{name: "only a slot that ends later is not done", rule: "IsDone", regime: twoSchedules, instead: func(head machine.Carried, slot slots.Slot, by slots.Schedule) bool {
		return standard.IsDone(head, slot, by) && !slot.End.After(head.Done.End)
	}, as: "is for a slot that is done"},
	// w0 comes back after an outage of half a minute, and begins what was due then.
	{name: "work is begun however late it is", rule: "MayStart", regime: punctual, instead: func(time.Time, time.Time) bool { return true }, as: "too late"},
	// w0 is done, and dies. w1 does it again.
	{name: "a done slot is claimed", rule: "IsDone", regime: jobs, instead: func(machine.Carried, slots.Slot, slots.Schedule) bool { return false }},
	// w0 is done with its slot after w1 has won the next. w0's record stands in w1's
	// way: w1 finds that the head is not its own any more.
	{name: "a done record takes the term", rule: "Record.Claim", regime: jobs, around: sending(func(r *store.Record) {
		if r.Kind == store.KindDone {
			r.Claim = "0123456789abcdef"
		}
	})},
	// w0's code panics when w1 has won the next slot. w0 says so in its own name, and w1 finds that
	// the head is not its own any more.
	{name: "an outcome takes the term", rule: "Repeat", regime: panicking, instead: func(r, head store.Record) store.Record {
		repeated := standard.Repeat(r, head)
		if r.Kind == store.KindOutcome {
			repeated.Claim, repeated.InstanceID = "0123456789abcdef", r.InstanceID
		}
		return repeated
	}, as: "takes the term"},
	// The same, but the record says from when on it knows. What is left of the term is free.
	{name: "an outcome ends the term", rule: "Repeat", regime: panicking, instead: func(r, head store.Record) store.Record {
		repeated := standard.Repeat(r, head)
		if r.Kind == store.KindOutcome {
			repeated.WindowStart, repeated.WindowEnd = r.ReadAt, r.ReadAt
		}
		return repeated
	}, as: "changes the term"},
	// w0 is done. w1 wins the next slot, and releases it: a worker that reads the head learns
	// nothing of what is done.
	{name: "what is done is told by its own record only", rule: "Carry", regime: jobs, instead: func(head store.Record) machine.Carried {
		c := standard.Carry(head)
		c.DoneUntil = time.Time{}
		return c
	}},
	// Each worker counts its own attempts: together they try for ever.
	{name: "attempts are not counted in the ledger", rule: "Carry", regime: jobs, instead: func(head store.Record) machine.Carried {
		c := standard.Carry(head)
		c.Attempt = 0
		return c
	}},
	// w0's work fails, and it gives its slot back as if it had not begun: there is no last attempt.
	{name: "what has begun is no attempt", rule: "Uncounts", regime: jobs, instead: func(store.Record, machine.Sent) bool { return true }, as: "work was begun: true"},
	// The store stands still at w0's claim of a part of the slot. It was the last attempt, and nothing has run.
	{name: "a claim is an attempt", rule: "Uncounts", regime: stalling, instead: func(store.Record, machine.Sent) bool { return false }, as: "work was begun: false"},
	// w0 is stopped in its work, and so is w1: the slot is given up though nothing has failed.
	{name: "what was stopped has failed", rule: "Spares", regime: jobs, instead: func(store.Outcome) bool { return false }, as: "attempts don't count"},
	// Each failure is spared: they try for ever.
	{name: "no failure counts", rule: "Spares", regime: jobs, instead: func(o store.Outcome) bool { return o.Result == store.Failed }, as: "attempts don't count"},
	// w0 is done with a long slot, others hold what is left of it, and trim. w1 looks for
	// the record which says that w0 is done, doesn't find it, and does it again.
	{
		name: "what is done is looked up in the record that told it", rule: "the head tells all", regime: longJobs,
		around: func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
			return &linked{Ledger: l}, o
		}, as: "and it was done",
	},
}

// jobs is a run of the kind in which a task is run once per slot.
func jobs(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length = time.Hour
	o.Faults.Restarts = 5 * time.Minute
	o.Task = sim.DefaultTask
	o.Worker = workers(func(n int, w *workerlease.Options) {
		w.Priority, w.LeaseInterval, w.Job = n/2, time.Minute, &workerlease.Job{MaxAttempts: 3, StartWithin: time.Minute, Overrun: workerlease.Stop}
	})
	return o
}

// stalling is the same where workers take over from one another within a slot, on a store that stands still now and then.
func stalling(seed int64) sim.Options {
	o := jobs(seed)
	o.Faults.Delayed = 0.2
	change(&o, func(_ int, w *workerlease.Options) { w.FailoverWithin, w.Job.MaxAttempts = 5*time.Second, 1 })
	return o
}

// punctual is the same for work that may not begin late.
func punctual(seed int64) sim.Options {
	o := jobs(seed)
	change(&o, func(_ int, w *workerlease.Options) { w.Job.StartWithin = 5 * time.Second })
	return o
}

// twoSchedules is a run in which workers have two schedules, as when a change of it is rolled out.
func twoSchedules(seed int64) sim.Options {
	o := jobs(seed)
	o.Faults.Restarts, o.Faults.Failed = 0, 0
	o.Worker = workers(func(n int, w *workerlease.Options) {
		w.LeaseInterval, w.FailoverWithin, w.Job = time.Minute, 10*time.Second, &workerlease.Job{StartWithin: time.Minute, Overrun: workerlease.Stop}
		if n%2 == 0 {
			w.LeaseInterval, w.Job.StartWithin = 5*time.Minute, 5*time.Minute
		}
	})
	return o
}

// panicking is a run in which code often panics.
func panicking(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Length, o.Faults.Panicked = time.Hour, 0.2
	o.Worker = workers(func(n int, w *workerlease.Options) { w.Priority, w.LeaseInterval = n/2, time.Minute })
	return o
}

// failures is a run in which tasks fail, and replies get lost.
func failures(seed int64) sim.Options {
	o := jobs(seed)
	o.Faults.LostReply, o.Faults.Late, o.Faults.Failed = 0.1, 0.2, 0
	return o
}

// longJobs is a run in which a slot takes up all of it. Some run a task in it once, and
// others hold it for a short time at a time, and trim.
func longJobs(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 6, Length: 6 * time.Hour, Task: sim.DefaultTask,
		Faults: sim.Faults{Latency: 30 * time.Millisecond, Restarts: 20 * time.Minute},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.Priority, w.LeaseInterval, w.FailoverWithin = n/2, 6*time.Hour, 30*time.Second
			w.Retention = 2 * time.Hour
			if n < 2 {
				w.Job = &workerlease.Job{StartWithin: w.LeaseInterval, Overrun: workerlease.Stop}
			}
		}),
	}
}

// linked is a ledger whose records show what is done by the Seq of the record that said
// it first, in place of the metadata.
type linked struct {
	store.Ledger

	mu     sync.Mutex
	newest int64  // record that was seen
	link   string // of that
}

// note remembers the link of the newest record, and reports whether it is that.
func (l *linked) note(r store.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Seq < l.newest {
		return false
	}
	l.newest, l.link = r.Seq, r.Metadata
	return true
}

func (l *linked) Append(ctx context.Context, r store.Record) error {
	l.mu.Lock()
	r.Metadata = l.link
	l.mu.Unlock()
	if r.Kind == store.KindDone {
		r.Metadata = strconv.FormatInt(r.Seq, 10)
	}
	err := l.Ledger.Append(ctx, r)
	if err == nil {
		l.note(r)
	}
	return err
}

// follow looks up what is done.
func (l *linked) follow(ctx context.Context, r *store.Record) error {
	if !l.note(*r) || r.DoneUntil.IsZero() {
		return nil
	}
	seq, err := strconv.ParseInt(r.Metadata, 10, 64)
	if err != nil {
		return err
	}
	if _, err = l.Ledger.Get(ctx, r.WorkerType, seq); errors.Is(err, store.ErrNotFound) {
		r.DoneUntil, err = time.Time{}, nil
	}
	return err
}

func (l *linked) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := l.Ledger.Get(ctx, workerType, seq)
	if err != nil {
		return r, err
	}
	err = l.follow(ctx, &r)
	return r, err
}

func (l *linked) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	if err == nil && len(records) > 0 {
		err = l.follow(ctx, &records[0])
	}
	return records, stamp, err
}
