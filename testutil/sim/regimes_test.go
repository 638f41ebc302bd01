package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// regime is a kind of world, and what must come of it beyond what each world demands.
type regime struct {
	name  string
	draw  func(o *sim.Options, r *rand.Rand)
	judge func(o sim.Options, r *sim.Result, sum *tally) []string
	// spoil breaks the workers, or what they see, so that what is named must be noticed.
	spoil func(o *sim.Options)
	named string
	fixed bool // slots are as long in a long run
}

// regimes are the kinds of worlds that sim.Random leaves out. A seed is of the kind that has its
// number, modulo the length of this.
func regimes() []regime {
	return slices.Concat(stampRegimes, electionRegimes, scheduleRegimes, skewRegimes, machineRegimes, unfitRegimes, rosterRegimes, outcomeRegimes, orderRegimes, jobRegimes, lossRegimes)
}

func regimeOf(seed int64) regime {
	all := regimes()
	return all[seed%int64(len(all))]
}

// named is a regime for a seed that is kept: the number of a regime changes when others are added.
func named(t *testing.T, name string) regime {
	t.Helper()
	all := regimes()
	i := slices.IndexFunc(all, func(g regime) bool { return g.name == name })
	if i < 0 {
		t.Fatalf("there is no regime %q", name)
	}
	return all[i]
}

// inRegime draws the run of a seed in its regime.
func inRegime(seed int64) sim.Options { return drawn(regimeOf(seed), seed) }

// drawn is a run of eight workers in a quiet world, with what a regime adds.
func drawn(g regime, seed int64) sim.Options { return drawnFor(g, seed, *hours) }

// drawnFor is the same for a number of hours.
func drawnFor(g regime, seed int64, hours int) sim.Options {
	r := rand.New(rand.NewPCG(uint64(seed), 16))
	o := quiet(seed, pick(r, 10*time.Second, time.Minute, time.Minute, 5*time.Minute, 5*time.Minute, 5*time.Minute))
	o.Workers, o.Length = 8, 6*time.Hour
	// A clock with boot time is looked at each second, and matters in a suspend only. (The number of
	// the seed is that of the regime.)
	x := rand.New(rand.NewPCG(uint64(seed), 17))
	o.Faults.NoBoottime, o.Faults.NoFreeStamp = x.IntN(10) > 0, x.IntN(3) == 0
	o.Faults.Latency = pick(r, 5*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond)
	if g.draw(&o, r); !g.fixed {
		stretchFaults(&o, hours)
		o = stretchedBy(time.Duration(hours), 6, o)
	}
	return o
}

// stretchFaults lets as much go wrong in a slot of a long run as in one of a short run.
func stretchFaults(o *sim.Options, hours int) {
	f := &o.Faults
	for _, d := range []*time.Duration{&f.Restarts, &f.Elections, &f.WrongStamps, &f.WrongClocks, &f.ClockSteps, &f.WallSteps, &f.Failovers} {
		*d = *d * time.Duration(hours) / 6
	}
}

// pick is one of several, drawn evenly.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// each changes the options of every worker.
func eachWorker(o *sim.Options, change func(n int, w *workerlease.Options)) {
	inner := o.Worker
	o.Worker = func(n int) workerlease.Options {
		w := inner(n)
		change(n, &w)
		return w
	}
}

// TestNoTwoHoldersInAnyRegime: the same as TestNoTwoHoldersWorkAtOnce, in worlds whose
// clocks, elections, schedules, options and crowds are of another kind; and that somebody
// leads again in time.
func TestNoTwoHoldersInAnyRegime(t *testing.T) {
	seeds := number(t)
	if os.Getenv("SLOTLEASE_SIM_SEEDS") == "" {
		seeds = min(seeds, 2*int64(len(regimes())))
	}
	sum, all := sharded(t, seeds, inRegime, func(o sim.Options, r *sim.Result, sum *tally) {
		g := regimeOf(o.Seed)
		for _, wrong := range g.judge(o, r, sum) {
			r.Violations = append(r.Violations, fmt.Sprintf("seed %d, %s: %s", o.Seed, g.name, wrong))
		}
		for _, wrong := range unsound(o, r) {
			r.Violations = append(r.Violations, fmt.Sprintf("seed %d, %s: %s", o.Seed, g.name, wrong))
		}
		if r.Stale > 0 {
			r.Violations = append(r.Violations, fmt.Sprintf("seed %d, %s: %d stale writes were accepted", o.Seed, g.name, r.Stale))
		}
	})
	if !all {
		return
	}
	if sum.Slots >= 20_000 && sum.Again > sum.Slots/1000 {
		t.Errorf("of %d slots whose work is done once, %d were done again after a living worker's success, want one in 1000 at most", sum.Slots, sum.Again)
	}
	t.Logf("of %d slots whose work is done once, %d were done again", sum.Slots, sum.Again)
	years := sum.Hours / 24 / 365.25
	t.Logf("%d seeds of %d regimes, %.1f years, mostly of 8 workers, %d leases, %d violations; faults that struck:\n%v%v",
		sum.Seeds, len(regimes()), years, sum.Leases, len(sum.Violations), sum.Struck, sum.Demands)
	save(t, figures.Proof{
		Name: "simulation-regimes", Command: fmt.Sprintf("make regimes SEEDS=%d HOURS=%d", sum.Seeds, *hours),
		Figures: []figures.Figure{
			{What: "seeds", Value: fmt.Sprint(sum.Seeds)},
			{What: "simulated years, mostly of 8 workers", Value: fmt.Sprintf("%.1f", years)},
			{What: "leases", Value: fmt.Sprint(sum.Leases)},
			{What: "slots whose work is done once", Value: fmt.Sprint(sum.Slots)},
			{What: "done again after a living worker's success", Value: fmt.Sprint(sum.Again)},
			{What: "violations", Value: fmt.Sprint(len(sum.Violations))},
		},
	})
}

// A regime in which nothing can go wrong proves nothing: each notices what is spoiled.
func TestEachRegimeNoticesWhatIsSpoiled(t *testing.T) {
	skipUnderRace(t)
	for i, g := range regimes() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			var wrong []string
			for n := range int64(8) {
				o := drawn(g, int64(i)+n*12)                                // So another regime changes no other's seeds.
				if o.Faults.WrongClocks == 0 && o.Faults.FirstStamps == 0 { // These show late.
					o.Length = min(o.Length, max(o.Length/3, 2*time.Hour))
				}
				g.spoil(&o)
				r := sim.Run(t, o)
				wrong = append(r.Violations, g.judge(o, r, &tally{})...)
				if slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, g.named) }) {
					return
				}
			}
			t.Errorf("not noticed: %q; of the last seed: %q", g.named, wrong)
		})
	}
}

// through gives workers another ledger, or one that is changed on the way.
func through(change func(store.Ledger) store.Ledger) func(*sim.Options) {
	return func(o *sim.Options) {
		o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(change(l), c)
		}
	}
}

// altered is a ledger that changes what goes through it.
type altered struct {
	store.Ledger
	append  func(r *store.Record) error // refuses, or changes the record
	read    func(r *store.Record)
	stamp   func(s *store.Stamp)
	outcome func(error) error // of appends and tails
}

func (x altered) decide(err error) error {
	if x.outcome == nil {
		return err
	}
	return x.outcome(err)
}

func (x altered) Append(ctx context.Context, r store.Record) error {
	if x.append != nil {
		if err := x.append(&r); err != nil {
			return err
		}
	}
	return x.decide(x.Ledger.Append(ctx, r))
}

func (x altered) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := x.Ledger.Get(ctx, workerType, seq)
	if x.read != nil {
		x.read(&r)
	}
	return r, err
}

func (x altered) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := x.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		if x.read != nil {
			x.read(&records[i])
		}
	}
	if x.stamp != nil && err == nil && !s.IsZero() {
		x.stamp(&s)
	}
	return records, s, x.decide(err)
}

func (x altered) Now(ctx context.Context) (store.Stamp, error) {
	s, err := x.Ledger.Now(ctx)
	if x.stamp != nil && err == nil {
		x.stamp(&s)
	}
	return s, err
}

// appending changes or refuses what workers append, restamped the stamps that they get.
func appending(change func(*store.Record) error) func(*sim.Options) {
	return through(func(l store.Ledger) store.Ledger { return altered{Ledger: l, append: change} })
}

func restamped(change func(*store.Stamp)) func(*sim.Options) {
	return through(func(l store.Ledger) store.Ledger { return altered{Ledger: l, stamp: change} })
}

// forgetful shows nothing of what is done.
var forgetful = through(func(l store.Ledger) store.Ledger {
	return altered{Ledger: l, read: func(r *store.Record) { r.DoneUntil = time.Time{} }}
})

// nobodyHad judges each stretch in which nobody had a lease by how long it counts, and how long it may be at most.
func nobodyHad(allowed func(o sim.Options, r *sim.Result, s sim.Span) (long, most time.Duration)) func(sim.Options, *sim.Result, *tally) []string {
	return func(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
		for _, s := range without(r, o.Length) {
			if long, most := allowed(o, r, s); long > most {
				wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v, from %v on, of which %v count; want %v at most", s.To-s.From, s.From, long, most))
			}
		}
		return wrong
	}
}

// covered are the stretches in which some process had a lease, from the first on.
func covered(r *sim.Result) (out []sim.Span) {
	for _, l := range r.Leases {
		s := sim.Span{From: l.Began, To: max(l.Ended, l.Began)}
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// without are the stretches in which nobody had a lease, from the first lease up to a time.
func without(r *sim.Result, end time.Duration) (out []sim.Span) {
	spans := covered(r)
	for i, s := range spans {
		to := end
		if i+1 < len(spans) {
			to = spans[i+1].From
		}
		if s.To < min(to, end) {
			out = append(out, sim.Span{From: s.To, To: min(to, end)})
		}
	}
	return out
}

// within is the part of a stretch within another.
func within(s, of sim.Span) time.Duration { return max(0, min(s.To, of.To)-max(s.From, of.From)) }
