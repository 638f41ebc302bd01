package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// stampRegimes: the store's time is wrong.
var stampRegimes = []regime{
	{"lone wrong stamps", func(o *sim.Options, r *rand.Rand) {
		o.Faults.WrongStamps = pick(r, 20*time.Minute, time.Hour)
		o.Faults.WrongBy = pick(r, time.Minute, 2*time.Hour, 30*365*24*time.Hour)
	}, afterWrongStamps, through(stubborn), "nobody had a slot", false},
	{"wrong first stamps", func(o *sim.Options, r *rand.Rand) {
		o.Faults.FirstStamps, o.Faults.Restarts = 0.3, time.Hour
		o.Faults.WrongBy = pick(r, time.Minute, 2*time.Hour, 30*365*24*time.Hour)
		join := r.IntN(2) == 0
		eachWorker(o, func(n int, w *workerlease.Options) { w.JoinMidSlot = join && n%2 == 0 })
	}, idleFor(8), through(stubborn), "nobody had a slot", false},
	{"members that answer in turn", func(o *sim.Options, r *rand.Rand) {
		o.Faults.InTurn = true
	}, idleFor(0), through(func(l store.Ledger) store.Ledger {
		return &restamped{Ledger: l, change: func(s *store.Stamp) { s.Skew = 0 }}
	}), "works before its window", false},
	{"members that answer in turn and contradict each other", func(o *sim.Options, r *rand.Rand) {
		o.Faults.InTurn, o.Faults.Apart = true, pick(r, 300*time.Millisecond, time.Second)
	}, idleFor(1), through(farther), "nobody had a slot", false},
	{"wrong clocks", func(o *sim.Options, r *rand.Rand) {
		o.Faults.WrongClocks = pick(r, time.Hour, 3*time.Hour)
		o.Faults.WrongClockBy = pick(r, time.Minute, 10*time.Minute, 2*time.Hour, 26*time.Hour)
	}, afterWrongClocks, through(func(l store.Ledger) store.Ledger { return resetless{l} }), "nobody had a slot", false},
}

// afterWrongStamps: each of them costs at most one slot.
func afterWrongStamps(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	interval := o.Worker(0).LeaseInterval
	for i, x := range r.Wrong {
		until := o.Length
		if i+1 < len(r.Wrong) {
			until = r.Wrong[i+1].From
		}
		idle := time.Duration(0)
		for _, s := range without(r, o.Length) {
			if d := within(s, sim.Span{From: x.From, To: until}); d > late(o, interval)+o.Worker(0).Margin+300*time.Millisecond {
				idle += d
			}
		}
		if idle > interval+2*late(o, interval) {
			wrong = append(wrong, fmt.Sprintf("after a wrong stamp at %v, nobody had a slot for %v", x.From, idle))
		}
	}
	return wrong
}

// idleFor demands that nobody has no lease for longer than a number of slots.
func idleFor(slots time.Duration) func(sim.Options, *sim.Result, *tally) []string {
	return func(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
		interval := o.Worker(0).LeaseInterval
		for _, s := range without(r, o.Length) {
			if most := slots*interval + late(o, interval) + 2*o.Faults.Apart + 2*interval/100; s.To-s.From > most {
				wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v, from %v on, want %v at most", s.To-s.From, s.From, most))
			}
		}
		return wrong
	}
}

// mostAhead is how far ahead a window may begin that is obeyed: those that were granted by a clock
// which was then set back by less are waited for.
const mostAhead = 2 * priority.MaxLead

// afterWrongClocks: somebody leads again within the longest of a slot and the windows in force,
// five minutes, and the time until it is noticed. While a window is watched, it may come to be
// near enough to be obeyed.
func afterWrongClocks(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	interval := o.Worker(0).LeaseInterval
	var changes []time.Duration
	for _, x := range r.Wrong {
		changes = append(changes, x.From)
		if x.To < o.Length {
			changes = append(changes, x.To)
		}
	}
	for _, s := range without(r, o.Length) {
		begin := s.From
		for _, c := range changes {
			if c <= s.To && c > begin {
				begin = c // It counts from the latest change.
			}
		}
		if most := 3*interval + 5*time.Minute + mostAhead + 5*late(o, interval); s.To-begin > most {
			wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v, from %v on, %v after the clock changed, want %v at most", s.To-s.From, s.From, s.To-begin, most))
		}
	}
	return wrong
}

// restamped changes the store's stamps.
type restamped struct {
	store.Ledger
	change func(*store.Stamp)
}

func (x *restamped) Now(ctx context.Context) (store.Stamp, error) {
	s, err := x.Ledger.Now(ctx)
	if err == nil {
		x.change(&s)
	}
	return s, err
}

func (x *restamped) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := x.Ledger.Tail(ctx, workerType, limit)
	if err == nil && !s.IsZero() {
		x.change(&s)
	}
	return records, s, err
}

// stubborn repeats a wrong answer for most of an hour. In here, time.Now is true time.
func stubborn(l store.Ledger) store.Ledger {
	var mu sync.Mutex
	var off time.Duration
	var since time.Time
	return &restamped{Ledger: l, change: func(s *store.Stamp) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		switch d := s.Time.Sub(now); {
		case off != 0 && now.Sub(since) < 50*time.Minute:
			s.Time = s.Time.Add(off)
		case d.Abs() > 800*time.Millisecond:
			off, since = d, now
		}
	}}
}

// farther makes the clocks of the store's members a thousand times as wrong.
func farther(l store.Ledger) store.Ledger {
	return &restamped{Ledger: l, change: func(s *store.Stamp) { s.Time = s.Time.Add(1000 * time.Until(s.Time)) }}
}

// resetless supersedes no poison.
type resetless struct{ store.Ledger }

func (x resetless) Append(ctx context.Context, r store.Record) error {
	if r.Kind == store.KindReset {
		return errors.New("no resets")
	}
	return x.Ledger.Append(ctx, r)
}
