package workerlease_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
)

var simSeed = flag.Int64("sim.seed", -1, "run only this seed of the simulation, and print its leases")

// drawn is the simulation of a seed: all kinds of faults at once, at rates of
// the seed's own, within what the protocol assumes.
func drawn(seed int64) simulation {
	rate := func(name string, most float64) float64 {
		return most * max(0, draw(seed, name)*1.5-0.5) // often none at all
	}
	every := func(name string, d time.Duration) time.Duration {
		if draw(seed, name) < 0.3 {
			return 0
		}
		return drawTime(draw(seed, name+" length"), d/4, 4*d)
	}
	return simulation{
		seed: seed, workers: 8, length: 2 * time.Hour,
		interval: []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}[int(3*draw(seed, "interval"))],
		drift:    900e-6,
		rates: faultstore.Rates{
			Latency: drawTime(draw(seed, "latency"), time.Millisecond, 300*time.Millisecond),
			Slow:    rate("slow", 0.1), SlowBy: time.Minute,
			Failure: rate("failure", 0.1), LostReply: rate("lost reply", 0.2),
			BlackHole: rate("black hole", 0.1), Throttled: rate("throttled", 0.1),
			OwnConflict: rate("own conflict", 0.2),
			Late:        rate("late", 0.2), LateBy: 90 * time.Minute,
			Stale: rate("stale", 0.2), HideNewest: 3, HideYounger: time.Minute,
		},
		stall: every("stall", 20*time.Minute),
		crash: every("crash", 40*time.Minute),
		cut:   every("cut", 30*time.Minute),

		groups: draw(seed, "groups") < 0.3,
		mixed:  draw(seed, "mixed") < 0.2,
	}
}

// simulate runs a simulation in a bubble of its own.
func simulate(t *testing.T, s simulation) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(s)
		w.run()
	})
	return w
}

// violations lists what must not have happened.
func (w *world) violations() []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var last *term
	var before, holding time.Duration
	for _, t := range w.terms {
		stalls := w.stallsOf(t)
		if t.began < t.start {
			bad("%v began before its window", t)
		}
		if t.worked >= t.end {
			bad("%v worked after its window", t)
		}
		// The context ends in time, but for a process that did not run.
		if stop := stalls.pausedAt(t.ended); !t.crashed && stop >= t.end && !stalls.justResumed(t.ended, time.Second) {
			bad("%v was told to stop after its window", t)
		}
		if t.ended < t.began && !t.crashed {
			bad("%v never ended", t)
		}
		if want := 1; t.expired != want && !t.crashed {
			bad("%v expired %d times", t, t.expired)
		}
		// What was done by holders before this one: by all of a group, if it is one.
		switch {
		case last == nil:
		case t.token == last.token && t.group == last.group && t.group != "":
		case t.token <= last.token:
			bad("%v has a token that is not above that of %v", t, last)
		default:
			before, holding = max(before, holding), 0
		}
		if t.began < before {
			bad("%v overlaps work of a token before, until %v", t, before)
		}
		holding = max(holding, t.worked, min(stalls.pausedAt(t.ended), t.end))
		last = t
	}
	return append(out, w.ledgerViolations()...)
}

// ledgerViolations checks the records themselves.
func (w *world) ledgerViolations() []string {
	var out []string
	records, _, err := w.ledger.Tail(context.Background(), "sim", 1<<20)
	if err != nil {
		return []string{err.Error()}
	}
	for i, r := range records[:max(len(records)-1, 0)] {
		before := records[i+1]
		if r.Seq != before.Seq+1 {
			continue // a late append on a key that was trimmed, or below it
		}
		if r.Kind == store.KindGrant && r.WindowStart.Before(before.WindowEnd) {
			out = append(out, fmt.Sprintf("seq %d starts before seq %d ends", r.Seq, before.Seq))
		}
		if r.Kind == store.KindGrant && r.Token <= before.Token || r.Token < before.Token {
			out = append(out, fmt.Sprintf("seq %d has token %d after %d", r.Seq, r.Token, before.Token))
		}
		if r.Kind == store.KindRelease && (r.Claim != before.Claim || r.WindowEnd.After(before.WindowEnd)) {
			out = append(out, fmt.Sprintf("seq %d releases what is not in seq %d", r.Seq, before.Seq))
		}
	}
	return out
}

func (w *world) stallsOf(t *term) stalls {
	return drawStalls(w.seed, int64(t.worker), int64(t.life), w.stall, w.length)
}

// justResumed reports that a suspend ended shortly before a time.
func (s stalls) justResumed(at, within time.Duration) bool {
	for _, x := range s {
		if x.suspend && x.to <= at && at <= x.to+within+within/100 {
			return true
		}
	}
	return false
}

// String is one line of a trace.
func (t *term) String() string {
	return fmt.Sprintf("w%d.%d%s token %d window %v…%v began %v worked %v ended %v %s",
		t.worker, t.life, t.group, t.token, t.start, t.end, t.began, t.worked, t.ended, t.why)
}

func (w *world) trace() string {
	var b strings.Builder
	for _, t := range w.terms {
		fmt.Fprintln(&b, t)
	}
	return b.String()
}

// seeds is how many seeds to run.
func seeds(t *testing.T, standard int) int64 {
	if s := os.Getenv("SLOTLEASE_SIM_SEEDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("SLOTLEASE_SIM_SEEDS = %q: %v", s, err)
		}
		return int64(n)
	}
	if testing.Short() || raceEnabled {
		return int64(standard) / 20
	}
	return int64(standard)
}

func TestSimulationNoTwoHoldersWorkAtOnce(t *testing.T) {
	if *simSeed >= 0 {
		w := simulate(t, drawn(*simSeed))
		t.Logf("%+v\n%s", w.simulation, w.trace())
		for _, v := range w.violations() {
			t.Error(v)
		}
		return
	}
	var mu sync.Mutex
	struck := map[string]int{}
	terms, slots := 0, 0 // where one slot is one lease
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds(t, 200) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := simulate(t, drawn(seed))
				for _, v := range w.violations() {
					t.Errorf("%s\nreplay with: go test ./workerlease -run TestSimulationNoTwo -sim.seed=%d -v", v, seed)
				}
				mu.Lock()
				defer mu.Unlock()
				for kind, n := range w.struck {
					struck[kind] += n
				}
				if !w.groups && !w.mixed {
					terms += len(w.terms)
					slots += int(w.length / w.interval)
				}
			})
		}
	})
	t.Logf("%d leases in %d slots; faults that struck: %v", terms, slots, struck)
	if terms*10 < slots*9 {
		t.Errorf("%d leases in %d slots: too few for the faults to account for", terms, slots)
	}
}

func TestSimulationOfAQuietStoreTakesEverySlot(t *testing.T) {
	for seed := range int64(5) {
		s := drawn(seed)
		s.rates, s.stall, s.crash, s.cut = faultstore.Rates{Latency: 5 * time.Millisecond}, 0, 0, 0
		s.groups, s.mixed = false, false
		w := simulate(t, s)
		for _, v := range w.violations() {
			t.Errorf("seed %d: %s", seed, v)
		}
		if want := int(s.length/s.interval) - 1; len(w.terms) < want {
			t.Errorf("seed %d: %d leases, want at least %d", seed, len(w.terms), want)
		}
	}
}

// Each fault alone costs almost no slot: the claim is tried again before the
// boundary, or right after. Only a crash loses what its process held.
func TestSimulationOfOneFaultAtATimeKeepsTheSlots(t *testing.T) {
	for name, set := range map[string]func(*simulation){
		"high latency":    func(s *simulation) { s.rates.Latency = 300 * time.Millisecond },
		"slow operations": func(s *simulation) { s.rates.Slow, s.rates.SlowBy = 0.1, time.Minute },
		"failures":        func(s *simulation) { s.rates.Failure = 0.1 },
		"lost replies":    func(s *simulation) { s.rates.LostReply = 0.2 },
		"black holes":     func(s *simulation) { s.rates.BlackHole = 0.1 },
		"throttling":      func(s *simulation) { s.rates.Throttled = 0.1 },
		"own conflicts":   func(s *simulation) { s.rates.OwnConflict = 0.2 },
		"late appends":    func(s *simulation) { s.rates.Late, s.rates.LateBy = 0.2, 90*time.Minute },
		"stale reads":     func(s *simulation) { s.rates.Stale, s.rates.HideNewest = 0.2, 3 },
		"partitions":      func(s *simulation) { s.cut = 30 * time.Minute },
		"stalls":          func(s *simulation) { s.stall = 20 * time.Minute },
		"crashes":         func(s *simulation) { s.crash = 40 * time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(3) {
				s := drawn(seed)
				s.rates, s.stall, s.crash, s.cut = faultstore.Rates{Latency: 20 * time.Millisecond}, 0, 0, 0
				s.groups, s.mixed = false, false
				set(&s)
				w := simulate(t, s)
				for _, v := range w.violations() {
					t.Errorf("seed %d: %s", seed, v)
				}
				slots := int(s.length / s.interval)
				if got, want := len(w.terms), slots-max(1, slots/50); got < want {
					t.Errorf("seed %d: %d leases in %d slots, want at least %d", seed, got, slots, want)
				}
			}
		})
	}
}

func TestSimulationReplaysExactly(t *testing.T) {
	for seed := range int64(5) {
		first, second := simulate(t, drawn(seed)).trace(), simulate(t, drawn(seed)).trace()
		if first != second {
			t.Errorf("seed %d gave two traces:\n%s\n---\n%s", seed, first, second)
		}
		if first == "" {
			t.Errorf("seed %d: no leases", seed)
		}
	}
}

// The checks above must be able to fail: with clocks far outside of what the
// time line assumes, holders overlap, and that is noticed.
func TestSimulationNoticesOverlapsOfClocksThatBreakTheAssumptions(t *testing.T) {
	for seed := range int64(50) {
		s := drawn(seed)
		s.drift, s.interval = 0.2, 10*time.Minute
		for _, v := range simulate(t, s).violations() {
			if strings.Contains(v, "overlaps") {
				t.Logf("seed %d: %s", seed, v)
				return
			}
		}
	}
	t.Error("50 seeds with clocks that run 20% fast or slow: no overlap was noticed")
}
