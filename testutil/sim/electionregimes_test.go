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
			w.LeaseInterval, w.FailoverWithin, w.Job = interval, interval/2, &workerlease.Job{}
		})
		o.Length = 2 * time.Hour
		runs := &runs{by: map[time.Time][]run{}}
		o.Task = runs.task
		onceBySeed.Store(o.Seed, runs)
	}, oncePerSlot, through(func(l store.Ledger) store.Ledger { return forgetful{l} }), "done", false},
}

// afterElections: the slot that an election struck may be lost, and no more.
func afterElections(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	interval := o.Worker(0).LeaseInterval
	for _, s := range without(r, o.Length) {
		begin := s.From
		for _, d := range r.Down {
			if d.From <= s.To && d.To > begin {
				begin = d.To
			}
		}
		if most := interval + lead(interval) + 3*late(o, interval) + interval/100; s.To-begin > most {
			wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v, from %v on, and for %v after the newest election; want %v at most", s.To-s.From, s.From, s.To-begin, most))
		}
	}
	return wrong
}

// unforgiving fails for a while after each failure.
func unforgiving(l store.Ledger) store.Ledger {
	var mu sync.Mutex
	var until time.Time
	return &gated{l, func(err error) error {
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

// gated decides anew about the outcome of appends and reads.
type gated struct {
	store.Ledger
	decide func(error) error
}

func (x *gated) Append(ctx context.Context, r store.Record) error {
	return x.decide(x.Ledger.Append(ctx, r))
}

func (x *gated) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := x.Ledger.Tail(ctx, workerType, limit)
	return records, s, x.decide(err)
}

// forgetful doesn't show what is done.
type forgetful struct{ store.Ledger }

func (x forgetful) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := x.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		records[i].DoneUntil = time.Time{}
	}
	return records, s, err
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
