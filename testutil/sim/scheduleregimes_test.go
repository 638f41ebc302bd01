package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// scheduleRegimes: slots, options and crowds of another kind.
var scheduleRegimes = []regime{
	{"cron schedules while clocks change", func(o *sim.Options, r *rand.Rand) {
		zone := pick(r, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo")
		spec := pick(r, "*/15 * * * *", "0 * * * *", "30 2 * * *", "0 0,8,16 * * *", "*/20 1-3 * * *")
		s := composed(slots.Must(slots.Cron(spec, zone)), zone, rand.New(rand.NewPCG(uint64(o.Seed), 0)))
		eachWorker(o, func(_ int, w *workerlease.Options) { w.LeaseInterval, w.Schedule = 0, s })
		// A clock changes in each of these weeks somewhere.
		o.Begin = pick(r, time.Date(2000, 3, 25, 0, 0, 0, 0, time.UTC), time.Date(2000, 3, 31, 12, 0, 0, 0, time.UTC),
			time.Date(2000, 10, 28, 0, 0, 0, 0, time.UTC), time.Date(2001, 2, 16, 0, 0, 0, 0, time.UTC))
		o.Length = 5 * 24 * time.Hour
	}, eachSlotOfTheSchedule, failsInTheMiddle, "nobody had the slot", true},
	{"mixed options and schedules", func(o *sim.Options, r *rand.Rand) {
		o.Faults.Restarts = pick(r, 0, time.Hour)
		eachWorker(o, func(n int, w *workerlease.Options) {
			w.LeaseInterval = 0
			switch r := rand.New(rand.NewPCG(uint64(o.Seed), uint64(n))); r.IntN(5) {
			case 0:
				w.Schedule = slots.Must(slots.Cron("*/2 * * * *", "Asia/Kolkata"))
			case 1:
				w.LeaseInterval, w.Continuous, w.NoFailback = time.Minute, true, r.IntN(2) == 0
			case 2:
				w.LeaseInterval, w.FailoverWithin = 5*time.Minute, time.Minute
			case 3:
				w.LeaseInterval, w.TieBreak = 30*time.Second, pick(r, priority.Rotate, priority.Random)
			case 4:
				w.LeaseInterval, w.Group = 2*time.Minute, fmt.Sprint("g", r.IntN(2))
			}
		})
	}, idleAtMost(11 * time.Minute), failsInTheMiddle, "nobody had a slot", true},
	{"sixty workers of eight priorities", func(o *sim.Options, r *rand.Rand) {
		o.Workers, o.Length, o.Faults.Restarts = 60, pick(r, 20*time.Minute, time.Hour), pick(r, 0, time.Hour)
		tie := pick(r, priority.Sticky, priority.Rotate, priority.Random)
		eachWorker(o, func(n int, w *workerlease.Options) { w.Priority, w.TieBreak = n%8, tie })
	}, func(o sim.Options, r *sim.Result, sum *tally) []string {
		if o.Faults.Restarts > 0 {
			return idleFor(2)(o, r, sum)
		}
		return idleFor(0)(o, r, sum)
	}, failsInTheMiddle, "nobody had a slot", false},
	{"slots of a second and less", func(o *sim.Options, r *rand.Rand) {
		interval := pick[time.Duration](r, 100, 250, 500, 1000) * time.Millisecond
		o.Length, o.Faults.Skew, o.Faults.ClockSteps = 5*time.Minute, pick(r, 0, time.Millisecond), 0
		o.Faults.Latency = interval / 200
		eachWorker(o, func(_ int, w *workerlease.Options) { w.LeaseInterval = interval })
	}, func(o sim.Options, r *sim.Result, _ *tally) []string {
		if n := int((o.Length - time.Minute) / o.Worker(0).LeaseInterval); len(r.Leases) < n*97/100 {
			return []string{fmt.Sprintf("somebody had %d of %d slots only: nobody had a slot otherwise", len(r.Leases), n)}
		}
		return nil
	}, failsInTheMiddle, "nobody had a slot", true},
	{"clients of twenty types", func(o *sim.Options, r *rand.Rand) {
		o.Workers, o.Length, o.Faults.Restarts = 3, time.Hour, pick(r, 0, 20*time.Minute)
		x := &twenty{length: o.Length, interval: o.Worker(0).LeaseInterval, restarts: o.Faults.Restarts > 0, by: map[string][]deed{}}
		o.Callbacks = x.callbacks
		twentyBySeed.Store(o.Seed, x)
	}, eachOfTwentyTypes, failsInTheMiddle, "nobody had a slot", true},
}

// composed is a schedule, in some worlds joined with another one, without a date, or spread.
func composed(s slots.Schedule, zone string, r *rand.Rand) slots.Schedule {
	if r.IntN(2) == 0 {
		s = slots.Must(slots.Join(s, slots.Must(slots.Cron("40 12 * * 1-6", zone))))
	}
	if r.IntN(2) == 0 {
		s = slots.Must(slots.Except(s, pick(r, "2000-03-26", "2000-04-01..2000-04-02"), "2000-10-29", "2001-02-18"))
	}
	if r.IntN(2) == 0 {
		s = slots.Must(slots.Spread(s, 5*time.Minute, "job"))
	}
	return s
}

// failsInTheMiddle refuses appends in the middle third of a run.
func failsInTheMiddle(o *sim.Options) {
	from, to := o.Length/3, o.Length*2/3
	var mu sync.Mutex
	var origin time.Time
	through(func(l store.Ledger) store.Ledger {
		mu.Lock()
		defer mu.Unlock()
		if origin.IsZero() {
			origin = time.Now()
		}
		from, to := origin.Add(from), origin.Add(to)
		return altered{Ledger: l, append: func(*store.Record) error {
			if now := time.Now(); now.After(from) && now.Before(to) {
				return errors.New("refused")
			}
			return nil
		}}
	})(o)
}

// idleAtMost demands that nobody has no lease for longer.
func idleAtMost(most time.Duration) func(sim.Options, *sim.Result, *tally) []string {
	return nobodyHad(func(_ sim.Options, _ *sim.Result, s sim.Span) (time.Duration, time.Duration) {
		return s.To - s.From, most
	})
}

// eachSlotOfTheSchedule: each one that begins after all workers have started is had by one
// worker, from its start on.
func eachSlotOfTheSchedule(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	s := o.Worker(0).Schedule
	had := map[time.Duration]*sim.Lease{}
	for _, l := range r.Leases {
		if had[l.Start] != nil {
			wrong = append(wrong, fmt.Sprintf("%v has the slot that %v had", l, had[l.Start]))
		}
		had[l.Start] = l
	}
	for x := s.Next(o.Begin.Add(5 * time.Minute)); x.Start.Before(o.Begin.Add(o.Length)); x = s.Next(x.Start) {
		at := x.Start.Sub(o.Begin)
		l := had[at]
		if l == nil || l.Began > at+late(o, time.Minute) || l.End != x.End.Sub(o.Begin) {
			wrong = append(wrong, fmt.Sprintf("nobody had the slot from %v to %v from its start on: %v", x.Start, x.End, l))
		}
	}
	return wrong
}

// twenty are workers of twenty types on one client, and when which of them worked.
type twenty struct {
	length, interval time.Duration
	restarts         bool

	mu      sync.Mutex
	origin  time.Time
	by      map[string][]deed
	running int           // processes
	since   time.Duration // when the newest of them began or ended
	nobody  []gap         // when none ran
}

// gap is a time in which no process ran.
type gap struct{ from, to time.Duration }

var twentyBySeed sync.Map

func (x *twenty) callbacks(p *sim.Process) workerlease.Callbacks {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.origin.IsZero() {
		x.origin = time.Now().Truncate(time.Minute)
	}
	go x.others(p)
	return sim.DefaultCallbacks(p)
}

// others leases the other nineteen types, until the process ends.
func (x *twenty) others(p *sim.Process) {
	sleep(p, time.Millisecond)
	client := p.Leasing().Client()
	var all []*workerlease.WorkerLease
	for n := range 19 {
		o := workerlease.Options{
			WorkerType: fmt.Sprint("type", n), InstanceID: fmt.Sprint("w", p.Worker), Priority: (n + p.Worker) % 3, LeaseInterval: x.interval,
		}
		l, err := client.StartLeasing(context.Background(), o, workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			for l.Valid() && !p.Dead() {
				x.mu.Lock()
				x.by[l.WorkerType] = append(x.by[l.WorkerType], deed{time.Since(x.origin), l.Token, p.String()})
				x.mu.Unlock()
				if !(exporter{process: p}).wait(ctx, x.interval/5) {
					return
				}
			}
		}})
		if err != nil {
			panic(err)
		}
		all = append(all, l)
	}
	x.run(p)
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(func() { _ = l.StopLeasing(context.Background()) })
	}
	wg.Wait()
}

// run waits for the end of a process, and notes the times in which none runs.
func (x *twenty) run(p *sim.Process) {
	count := func(n int) {
		x.mu.Lock()
		defer x.mu.Unlock()
		now := time.Since(x.origin)
		if x.running == 0 {
			x.nobody = append(x.nobody, gap{x.since, now})
		}
		x.running += n
		x.since = now
	}
	count(1)
	defer count(-1)
	for x.goesOn(p) {
		sleep(p, time.Second)
	}
}

// idle is for how long no process ran between two times.
func (x *twenty) idle(from, to time.Duration) (sum time.Duration) {
	for _, n := range x.nobody {
		sum += max(0, min(to, n.to)-max(from, n.from))
	}
	return sum
}

func (x *twenty) goesOn(p *sim.Process) bool {
	return !gone(p) && time.Since(x.origin) < x.length-time.Second
}

// eachOfTwentyTypes: of each type one works at a time, under growing tokens, in each slot.
func eachOfTwentyTypes(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	v, _ := twentyBySeed.LoadAndDelete(o.Seed)
	x := v.(*twenty)
	if x.running == 0 {
		x.nobody = append(x.nobody, gap{x.since, o.Length})
	}
	most := x.interval + x.interval/2 // Work comes every fifth of a slot.
	if x.restarts {
		most += 2 * x.interval
	}
	for n := range 19 {
		name := fmt.Sprint("type", n)
		deeds := x.by[name]
		if len(deeds) == 0 {
			wrong = append(wrong, "nobody had a slot of "+name)
			continue
		}
		for i, d := range deeds[1:] {
			before := deeds[i]
			if d.token < before.token || d.token == before.token && d.who != before.who {
				wrong = append(wrong, fmt.Sprintf("%s: %s works at %v under token %d, after %s at %v under %d", name, d.who, d.at, d.token, before.who, before.at, before.token))
			}
			if d.at-before.at > most+x.idle(before.at, d.at) {
				wrong = append(wrong, fmt.Sprintf("%s: nobody had a slot from %v to %v", name, before.at, d.at))
			}
		}
		if last := deeds[len(deeds)-1].at; o.Length-last > most+x.interval+x.idle(last, o.Length) {
			wrong = append(wrong, fmt.Sprintf("%s: nobody had a slot from %v on", name, last))
		}
	}
	return wrong
}
