package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// electionRegimes: the store elects a primary now and then.
var electionRegimes = []regime{
	{"elections", func(o *sim.Options, r *rand.Rand) {
		o.Faults.Elections = pick(r, 3*time.Minute, 15*time.Minute)
		o.Faults.LostReply = pick(r, 0, 0.05)
		parts, kind := time.Duration(2+r.IntN(4)), r.IntN(4)
		eachWorker(o, func(_ int, w *workerlease.Options) {
			w.Continuous = kind == 1
			if kind > 1 && w.LeaseInterval > 10*time.Second {
				w.FailoverWithin, w.Continuous = w.LeaseInterval/parts, kind == 2
			}
		})
	}, afterElections, through(unforgiving), "nobody had a slot", false},
	{"elections, once per slot", func(o *sim.Options, r *rand.Rand) {
		o.Faults.Elections, o.Faults.Restarts = pick(r, 10*time.Minute, 30*time.Minute), pick(r, 0, 20*time.Minute)
		interval := pick(r, 10*time.Second, time.Minute)
		eachWorker(o, func(_ int, w *workerlease.Options) {
			w.LeaseInterval, w.FailoverWithin, w.Job = interval, interval/2, &workerlease.Job{StartWithin: interval, Overrun: workerlease.Stop}
		})
		o.Length = 2 * time.Hour
		runs := &runs{by: map[time.Time][]run{}}
		o.Task = runs.task
		onceBySeed.Store(o.Seed, runs)
	}, oncePerSlot, forgetful, "done", false},
}

// afterElections: the slot that an election struck may be lost, and no more.
var afterElections = nobodyHad(func(o sim.Options, r *sim.Result, s sim.Span) (long, most time.Duration) {
	interval, begin := o.Worker(0).LeaseInterval, s.From
	for _, d := range r.Down {
		if d.From <= s.To && d.To > begin {
			begin = d.To
		}
	}
	return s.To - begin, interval + lead(interval) + 3*late(o, interval) + interval/100
})

// unforgiving fails for a while after each failure.
func unforgiving(l store.Ledger) store.Ledger {
	var mu sync.Mutex
	var until time.Time
	return altered{Ledger: l, outcome: func(err error) error {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			until = now.Add(20 * time.Minute)
		}
		if now.Before(until) {
			return errors.New("failed not long ago")
		}
		return err
	}}
}

// run is one call of a task.
type run struct {
	p     *sim.Process
	began time.Time
	done  time.Time // when it returned without an error, and its process lived
}

// runs are those of all slots of a simulation.
type runs struct {
	mu sync.Mutex
	by map[time.Time][]run
}

var onceBySeed sync.Map // the runs of a seed

func (x *runs) task(p *sim.Process) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		x.mu.Lock()
		n := len(x.by[l.Slot.Start])
		x.by[l.Slot.Start] = append(x.by[l.Slot.Start], run{p: p, began: time.Now()})
		x.mu.Unlock()
		p.Work(l)
		length := l.Slot.Length() * time.Duration(1+uint64(l.Token)%8) / 20
		if (exporter{process: p}).wait(ctx, length); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if !p.Dead() {
			x.by[l.Slot.Start][n].done = time.Now()
		}
		return nil
	}
}

// oncePerSlot counts the slots that were done again although a living worker had done them, and
// demands that nearly all were done.
func oncePerSlot(o sim.Options, r *sim.Result, sum *tally) (wrong []string) {
	v, _ := onceBySeed.LoadAndDelete(o.Seed)
	again, done := 0, 0
	x := v.(*runs)
	for _, of := range x.by {
		sum.Slots++
		var first time.Time
		for _, y := range of {
			if !first.IsZero() && y.began.After(first) {
				again++
			}
			if !y.done.IsZero() && (first.IsZero() || y.done.Before(first)) {
				first = y.done
			}
		}
		if !first.IsZero() {
			done++
		}
	}
	sum.Again += again
	slots := int((o.Length-2*time.Minute)/o.Worker(0).LeaseInterval) - 2
	if done < slots*9/10 {
		wrong = append(wrong, fmt.Sprintf("%d of %d slots were done", done, slots))
	}
	return wrong
}

// lossRegimes: the store loses records that it had acknowledged.
var lossRegimes = []regime{
	{"lost records", losing, afterLosses, through(func(l store.Ledger) store.Ledger { return uncomparing{l} }), "which was lost", false},
	{"lost records, and a history that says so", func(o *sim.Options, r *rand.Rand) {
		losing(o, r)
		o.Faults.NamesHistory, o.Faults.NoFreeStamp = true, false
	}, afterLosses, restamped(func(s *store.Stamp) { s.History = "" }), "though it knew", false},
	{"lost records of a store that compares nothing", func(o *sim.Options, r *rand.Rand) {
		losing(o, r)
		o.Faults.Unfollowed = true
	}, afterLosses, through(func(l store.Ledger) store.Ledger { return uncomparing{l} }), "which was lost", false},
}

func losing(o *sim.Options, r *rand.Rand) {
	o.Faults.Restarts = pick(r, 0, time.Hour)
	parts, kind := time.Duration(2+r.IntN(4)), r.IntN(4)
	o.Faults.Losses = max(20*o.Worker(0).LeaseInterval, 10*time.Minute)
	eachWorker(o, func(_ int, w *workerlease.Options) {
		w.Continuous, w.NoFailback = kind >= 2, kind == 3
		if kind > 0 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
	})
}

// afterLosses: each of them costs the rest of its slot, one more, and a lead, if workers restart or know of it by the history. Where
// the store compares nothing, a record may come to stand above one that contradicts it, until it is superseded.
var afterLosses = nobodyHad(func(o sim.Options, _ *sim.Result, s sim.Span) (long, most time.Duration) {
	interval := o.Worker(0).LeaseInterval
	if o.Faults.Unfollowed {
		most = interval + 5*time.Minute
	}
	return s.To - s.From, most + 3*interval + 4*late(o, interval)
})

// uncomparing doesn't compare the record below.
type uncomparing struct{ store.Ledger }

func (x uncomparing) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := store.CheckAfter(r, prev); err != nil {
		return err
	}
	return x.Append(ctx, r)
}
