package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// early cuts slots of an hour, five seconds before each full one.
type early struct{}

const ahead = 5 * time.Second

func (early) At(t time.Time) slots.Slot {
	start := t.Add(ahead).Truncate(time.Hour).Add(-ahead)
	return slots.Slot{Start: start, End: start.Add(time.Hour)}
}

func (e early) Next(t time.Time) slots.Slot { return e.At(e.At(t).End) }

func (early) String() string { return "early" }

// outlasting is code that outlasts its lease in the first worker, and doesn't in the others.
func outlasting(long time.Duration) func(*sim.Process) workerlease.Callbacks {
	return func(p *sim.Process) workerlease.Callbacks {
		return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			p.Work(l)
			<-ctx.Done()
			if p.Worker == 0 {
				p.Clock().Sleep(long)
			}
		}}
	}
}

// Some options and code of users keep a worker from its slot. The world knows them, and
// demands nothing impossible.
func TestTheWorldDemandsNothingThatUsersHaveGivenUp(t *testing.T) {
	suites.Prove(t, "it simulates for half a minute")
	skipUnderRace(t)
	const soon = 20 * time.Millisecond
	of := func(interval time.Duration, change func(n int, w *workerlease.Options)) func(int) workerlease.Options {
		return func(n int) workerlease.Options {
			w := workerlease.Options{WorkerType: "sim", InstanceID: fmt.Sprint("w", n), Priority: n, LeaseInterval: interval}
			change(n, &w)
			return w
		}
	}
	for name, o := range map[string]sim.Options{
		"code that stops its worker": {Workers: 3, Callbacks: func(p *sim.Process) workerlease.Callbacks {
			return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				p.Work(l)
				go func() { _ = p.Leasing().StopLeasing(context.Background()) }()
				<-ctx.Done()
			}}
		}},
		"another longest backoff": {
			Workers: 4, Length: 12 * time.Hour, Callbacks: outlasting(20 * time.Hour), Faults: sim.Faults{Latency: soon, Outages: 35 * time.Minute},
			Worker: of(10*time.Minute, func(n int, w *workerlease.Options) {
				if n > 0 {
					w.MaxBackoff, w.Priority, w.TieBreak = time.Hour, 1, priority.Rotate
				}
			}),
		},
		"another lead": {
			Workers: 3, Length: 6 * time.Hour, Callbacks: outlasting(20 * time.Hour), Faults: sim.Faults{Latency: 65 * time.Millisecond},
			Worker: of(time.Minute, func(n int, w *workerlease.Options) {
				if n > 0 {
					w.Lead, w.Priority, w.TieBreak = time.Second, 7, priority.Random
				}
			}),
		},
		"another lead, and take-overs": {
			Workers: 3, Length: 12 * time.Hour, Faults: sim.Faults{Latency: soon, Restarts: 40 * time.Minute},
			Worker: of(5*time.Minute, func(n int, w *workerlease.Options) {
				w.FailoverWithin, w.WaitForBoundary = 20*time.Second, true
				if n == 0 {
					w.Lead = 100 * time.Millisecond
				}
			}),
		},
		"take-overs of one worker only": {
			Workers: 2, Length: 12 * time.Hour, Faults: sim.Faults{Latency: soon, Outages: 15 * time.Minute, Restarts: time.Hour},
			Worker: of(10*time.Minute, func(n int, w *workerlease.Options) {
				if n == 0 {
					w.FailoverWithin = 30 * time.Second
				}
			}),
		},
		"slots of another cut": {
			Workers: 6, Length: 48 * time.Hour, Callbacks: outlasting(70 * time.Minute), Faults: sim.Faults{Latency: soon},
			Worker: of(0, func(n int, w *workerlease.Options) {
				if n == 0 {
					w.Schedule = early{}
				}
			}),
		},
		"a group that starts near the end": {
			Workers: 8, Length: 155 * time.Second, Faults: sim.Faults{Latency: 300 * time.Millisecond, Restarts: 20 * time.Second},
			Worker: of(time.Minute, func(n int, w *workerlease.Options) { w.Group, w.Priority = "g", n%3 }),
		},
		"a task that outlasts its slot": {
			Workers: 1, Length: 3 * time.Hour, Faults: sim.Faults{Latency: 300 * time.Millisecond},
			Worker: of(time.Minute, func(int, *workerlease.Options) {}),
			Task: func(p *sim.Process) workerlease.Task {
				return func(ctx context.Context, l workerlease.Lease) error {
					p.Work(l)
					<-ctx.Done()
					p.Clock().Sleep(60*time.Second + 300*time.Millisecond)
					return nil
				}
			},
		},
		"a LeaseExtended that takes its time": {
			Workers: 2, Length: 6 * time.Hour, Faults: sim.Faults{Latency: soon, Restarts: 20 * time.Minute},
			Worker: of(time.Minute, func(_ int, w *workerlease.Options) { w.Continuous = true }),
			Callbacks: func(p *sim.Process) workerlease.Callbacks {
				cb := outlasting(0)(p)
				cb.LeaseExtended = func(workerlease.Lease) {
					if p.Worker == 1 {
						p.Clock().Sleep(7 * time.Minute)
					}
				}
				return cb
			},
		},
		"slots of days, released long ago": {
			Workers: 3, Length: 10 * 24 * time.Hour,
			Faults: sim.Faults{Latency: soon, Drift: 0.001, Skew: 100 * time.Millisecond, Restarts: 40 * time.Hour, Outages: 20 * time.Hour},
			Worker: of(24*time.Hour, func(int, *workerlease.Options) {}),
		},
		"a wide margin": {
			Workers: 4, Length: 6 * time.Hour, Faults: sim.Faults{Latency: soon, Restarts: 10 * time.Minute},
			Worker: of(time.Minute, func(_ int, w *workerlease.Options) { w.Margin = 29 * time.Second }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for o.Seed = range fewer(4) {
				r := sim.Run(t, o)
				for _, v := range r.Violations {
					t.Errorf("seed %d: %s", o.Seed, v)
				}
			}
		})
	}
}
