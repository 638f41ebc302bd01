package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// orderRegimes: operators pause, prefer, drain and ask for releases. The world checks that no claim lands in a
// pause, that orders are repeated until they end, that leases end by orders which are about them, that a preferred
// worker leads, and that no slot is lost otherwise.
var orderRegimes = []regime{
	{"operators", func(o *sim.Options, r *rand.Rand) {
		ordered(o, r)
	}, nothingMore, deaf, "lands in a pause", false},
	{"operators, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		ordered(o, r)
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver, f.OwnConflict, f.Stale = 0.02, 0.1, 0.1, 0.02, 0.005, 0.1, pick(r, 0, 0.1)
		f.Skew, f.Failovers, f.Blocked, f.Panicked = 100*time.Millisecond, pick(r, 0, 20*time.Minute), 0.02, 0.02
	}, nothingMore, deaf, "lands in a pause", false},
}

// ordered draws how often operators give orders, and how workers lead.
func ordered(o *sim.Options, r *rand.Rand) {
	interval := o.Worker(0).LeaseInterval
	o.Orders = pick(r, 2*interval, 6*interval, 15*interval)
	o.Hints = r.IntN(2) == 0
	kind, parts, stays, joins := r.IntN(6), time.Duration(2+r.IntN(4)), r.IntN(2) == 0, r.IntN(3) == 0
	if kind > 3 {
		o.Task = sim.DefaultTask
	}
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.WaitForBoundary = !joins
		if kind == 0 && stays && n < 4 {
			w.Group = "g"
		}
		if kind%2 == 1 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
		switch {
		case kind > 3:
			w.Job = &workerlease.Job{MaxAttempts: 3, StartWithin: w.LeaseInterval, Overrun: workerlease.Stop}
		case kind > 1:
			w.Continuous, w.NoFailback = true, stays
		}
	})
}

// deaf workers read nothing of orders.
func deaf(o *sim.Options) {
	inner := o.Client
	if inner == nil {
		inner = workerlease.NewClient
	}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return inner(altered{Ledger: l, read: func(r *store.Record) { r.Orders = "" }}, c)
	}
}

// Operators give orders while workers lead in all ways, and nothing breaks: SLOTLEASE_ORDER_SEEDS runs of six
// hours, of each kind.
func TestOperatorsBreakNoPromise(t *testing.T) {
	skipUnderRace(t)
	seeds, err := strconv.ParseInt(cmp.Or(os.Getenv("SLOTLEASE_ORDER_SEEDS"), "3"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var sum sim.Demands
	orders := 0
	t.Run("seeds", func(t *testing.T) {
		for _, g := range orderRegimes {
			for seed := range seeds {
				t.Run(fmt.Sprint(g.name, " ", seed), func(t *testing.T) {
					t.Parallel()
					r := sim.Run(t, drawn(g, 7000+seed))
					r.Check(t)
					mu.Lock()
					defer mu.Unlock()
					sum.Add(r.Demands)
					for _, x := range r.Records["quiet"] {
						if x.Kind == store.KindOrder {
							orders++
						}
					}
				})
			}
		}
	})
	if sum.Preferred == 0 || sum.Boundaries == 0 || orders == 0 {
		t.Errorf("%d orders were given, a preferred worker had to have %d slots, and some worker %d: nothing was tested", orders, sum.Preferred, sum.Boundaries)
	}
	t.Logf("%d orders in the last records of %d runs\n%v", orders, 2*seeds, sum)
}

// unfitRegimes: workers are not eligible at times, or make no progress. The world checks that they claim
// nothing then, and step down in time, and that others follow.
var unfitRegimes = []regime{
	{"workers that are not eligible", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
	}, nothingMore, careless, "has not been eligible", false},
	{"workers that are not eligible, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver = 0.02, 0.1, 0.1, 0.02, 0.005
		f.Skew, f.Failovers, f.Blocked, f.Panicked = 100*time.Millisecond, pick(r, 0, 20*time.Minute), 0.02, 0.02
	}, nothingMore, careless, "has not been eligible", false},
}

// unfit draws how often workers are ill, and how they lead.
func unfit(o *sim.Options, r *rand.Rand) {
	f := &o.Faults
	f.Illnesses, f.BadChecks, f.Stuck = pick(r, 2*time.Minute, 15*time.Minute, time.Hour), pick(r, 0, 0.02), pick(r, 0, 0.2)
	o.Hints = r.IntN(2) == 0
	kind, parts, stuck := r.IntN(4), time.Duration(2+r.IntN(4)), f.Stuck > 0
	eachWorker(o, func(_ int, w *workerlease.Options) {
		w.Continuous = kind%2 == 1
		if kind > 1 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
		if stuck {
			w.ProgressWithin = w.LeaseInterval / 4
		}
	})
}

// nothingMore is demanded than each world demands.
func nothingMore(sim.Options, *sim.Result, *tally) []string { return nil }

// careless workers take themselves for well.
func careless(o *sim.Options) {
	eachWorker(o, func(_ int, w *workerlease.Options) { w.Eligible = func(context.Context) error { return nil } })
}

// rosterRegimes: workers say in a roster what they do, and take their places by it. What is lost there, old or
// a lie costs order at the worst: the world excuses nothing for it.
var rosterRegimes = []regime{
	{"a roster that lies", func(o *sim.Options, r *rand.Rand) {
		unfit(o, r)
		o.Hints = false
		attend(o, r)
		f := &o.Faults
		f.RosterLost, f.RosterOld, f.RosterLies = pick(r, 0.1, 0.9), pick(r, 0.1, 0.9), pick(r, 0.1, 0.9)
		f.Restarts, f.Stalls, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute)
	}, nothingMore, careless, "has not been eligible", false},
	{"a process that crashes in each lease", func(o *sim.Options, r *rand.Rand) {
		attend(o, r)
		eachWorker(o, func(n int, w *workerlease.Options) {
			w.Policy, w.TieBreak, w.LeaseInterval, w.Priority = nil, priority.Sticky, time.Minute, n
		})
		o.Faults.CrashLoops, o.Faults.RosterLost = 0.1, pick(r, 0, 0.05) // the one with the highest priority
	}, crashingHaveFew, func(o *sim.Options) { o.Roster = false }, "crashes in each", false},
}

// attend lets workers take part in the roster, by policies and tie-breaks of all kinds.
func attend(o *sim.Options, r *rand.Rand) {
	o.Roster = true
	tie := pick(r, priority.Sticky, priority.Rotate, priority.Spread, priority.Spread)
	policies := []workerlease.Policy{
		nil, nil, workerlease.PreferLabel("region", "eu"), workerlease.OldestVersion("version"), workerlease.FewestLeases(),
		func(own store.Presence, present []store.Presence) (int, string) {
			return len(present)*31 + own.Failures - 40, "at random"
		},
	}
	policy := policies[r.IntN(len(policies))]
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.TieBreak, w.Policy = tie, policy
		w.Labels = map[string]string{"region": []string{"eu", "us"}[n%2], "version": fmt.Sprint("1.", n/3)}
	})
}

// crashingHaveFew demands that a process which crashes in each lease leaves nine in ten slots to the others, besides
// those that it takes to notice it.
func crashingHaveFew(_ sim.Options, r *sim.Result, _ *tally) []string {
	crashing := 0
	slots := map[time.Duration]bool{}
	for _, l := range r.Leases {
		slots[l.Start] = true
		if l.Worker == 0 {
			crashing++
		}
	}
	if crashing > len(slots)/10+10 {
		return []string{fmt.Sprintf("w0, which crashes in each lease, has %d of %d slots", crashing, len(slots))}
	}
	return nil
}
