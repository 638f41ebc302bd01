package sim_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// story is the whole observable course of a run.
func story(r *sim.Result) []string {
	out := slices.Concat(strings.Split(r.Trace, "\n"), strings.Split(r.Struck.String(), "\n"), strings.Split(r.Demands.String(), "\n"))
	for _, x := range r.Overlaps {
		out = append(out, fmt.Sprint("overlap ", x.At, x.Reported, x.Deaf))
	}
	return out
}

// replayed runs a seed the given number of times, in turn on one processor and on two, and
// compares all stories with the first. It returns how many leases there were.
func replayed(t *testing.T, o sim.Options, times int) (leases int) {
	t.Helper()
	o.Trace = true
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []string
	for i := range times {
		runtime.GOMAXPROCS(1 + i%2)
		r := sim.Run(t, o)
		if i == 0 {
			first, leases = story(r), len(r.Leases)
			continue
		}
		if this := story(r); !slices.Equal(first, this) {
			t.Errorf("seed %d gave another story in run %d (-first, +this):\n%s", o.Seed, i+1, cmp.Diff(first, this))
			return leases
		}
	}
	return leases
}

// Nothing but the seed decides: not the number of processors, nor the order in
// which goroutines happen to run.
func TestASeedReplaysExactly(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	for _, c := range []struct {
		seeds   int64
		options func(seed int64) sim.Options
		length  time.Duration
	}{
		{25, sim.Random, time.Hour},
		{10, sim.RandomBeyond, time.Hour},
		{2, sim.Random, 6 * time.Hour},
		{10, sim.RandomExtended, 20 * time.Minute},
	} {
		for seed := range part(t, c.seeds) {
			o := c.options(seed)
			o.Length = c.length
			if replayed(t, o, 2) == 0 {
				t.Errorf("seed %d: no leases", seed)
			}
		}
	}
}

// So does a seed of each other kind of world, hints and operators included. In one kind, the simulated process runs many workers, which
// act at one instant; and so do a worker and the run that a trigger asks it for.
func TestASeedOfEachWorldReplaysExactly(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	length, leases := time.Hour, 0
	if suites.Quick() {
		length = 12 * time.Minute
	}
	for i, g := range regimes() {
		if o := drawn(g, int64(i)); g.name != "clients of twenty types" && o.Triggers == 0 {
			o.Length = min(o.Length, length)
			leases += replayed(t, o, 2)
		}
	}
	if leases < 1000 {
		t.Errorf("%d leases, want 1,000 or more", leases)
	}
	t.Logf("%d leases", leases)
}

// In these seeds two once held the lease. Poison was planted above a free key and superseded, and
// a stale read showed the record below it. In 417 a read returned only poison, and the
// record in force stood below. In 1409 a reset, at the end of a window far ahead, was taken for a
// window that had not begun.
func TestSeedsThatOnceHadTwoHolders(t *testing.T) {
	skipUnderRace(t)
	for _, seed := range []int64{210, 464, 1251, 8183, 417, 1409} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sim.Run(t, stretchedTo(24, sim.Random(seed))).Check(t)
		})
	}
}

// In these seeds the world once demanded too much. In the first three it said that no worker had a
// slot. One had: up to the end of a part that it could not extend, or of a slot of other workers,
// between the boundary and the world's check. In the last one, the world took a ledger that grows
// below poison for one on which nothing lands, and counted a second look as one too many.
func TestSeedsInWhichTheWorldOnceDemandedTooMuch(t *testing.T) {
	skipUnderRace(t)
	for seed, at := range map[int64]time.Duration{358: 17 * time.Minute, 429: 5 * time.Minute, 916: 875 * time.Second, 1458: 59 * time.Minute} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := longOrShort(seed)
			o.Length, o.Hints = at+time.Minute, false // as it was then
			sim.Run(t, o).Check(t)
		})
	}
}

// In this seed of a long run the world once demanded the slot at its boundary. But the holder before
// had released its term shortly before, and the clocks of the store's members were 3 s apart: nobody
// could be sure in time that the term had ended.
func TestASlotAfterALateReleaseMayBeginLate(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	o := drawnFor(named(t, "members whose clocks are apart"), 15508, 720)
	o.Length = 275 * time.Hour
	sim.Run(t, o).Check(t)
}

// In this seed of a long run no process ran for 35 s, and the slots of that time were demanded.
func TestSlotsOfTypesThatNobodyRunsAreNotDemanded(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	skipUnderRace(t)
	t.Parallel()
	g := named(t, "clients of twenty types")
	o := drawnFor(g, 20226, 720)
	r := sim.Run(t, o)
	r.Check(t)
	for _, wrong := range g.judge(o, r, nil) {
		t.Error(wrong)
	}
}

// This seed once took one of two courses at random. When an event and a wake-up had both
// arrived while an observer was slow, chance decided which came first.
func TestASeedThatOnceTookTwoCoursesReplays(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	skipUnderRace(t)
	t.Parallel()
	replayed(t, sim.Random(150), 2)
}

// In these seeds servers that answer in turn contradict each other, and slot after slot was once
// lost: each answer of the same clock in a row began an epoch; and a slot that was won by the clock
// from before was left to nobody.
func TestSeedsThatOnceLostSlotsToContradictingServers(t *testing.T) {
	skipUnderRace(t)
	g := named(t, "members that answer in turn")
	for _, seed := range []int64{63, 87, 363} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := drawn(g, seed)
			r := sim.Run(t, o)
			for _, wrong := range append(r.Violations, g.judge(o, r, &tally{})...) {
				t.Error(wrong)
			}
		})
	}
}

// In this seed a worker looked once more before it began what it had won, since a job may be done by then. The read
// was stale and had an order, and the attempts and orders of that old record went into the next one: a slot was tried
// once too often.
func TestAStaleLookWithAnOrderTakesBackNothing(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	skipUnderRace(t)
	t.Parallel()
	o := drawnFor(named(t, "operators, and much goes wrong"), 191, 6)
	o.Length = 102 * time.Minute
	sim.Run(t, o).Check(t)
}

// In this seed what came of work was told by a record whose reply was lost, and once more by the release.
func TestWhatCameOfWorkIsToldOnceWhenAReplyIsLost(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	o := sim.RandomSlow(14)
	o.Length = 6 * time.Hour
	sim.Run(t, o).Check(t)
}

// unsound are the faults that package verify finds in the ledgers of a run. Workers write none, whatever
// happens; and what the world planted is one only until workers have superseded it.
func unsound(o sim.Options, r *sim.Result) (wrong []string) {
	planted := map[int64]sim.Planted{}
	for _, p := range r.Planted {
		planted[p.Record.Seq] = p
	}
	begin := o.Begin
	if begin.IsZero() {
		begin = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	for workerType, records := range r.Records {
		// The store's clock, which verify goes by, may be ahead at the end of the run.
		now := begin.Add(o.Length)
		for _, x := range records {
			if p, is := planted[x.Seq]; o.Faults.WrongClocks > 0 && x.ReadAt.After(now) && (!is || x.Claim != p.Record.Claim) {
				now = x.ReadAt
			}
		}
		v := verify.New(verify.Options{WorkerType: workerType, Now: now, Uncertainty: time.Minute})
		for _, x := range records {
			if x.Seq > store.MaxSeq {
				continue
			}
			v.Add(x)
		}
		for _, f := range v.Report().Findings {
			p, is := planted[f.Seq]
			own := is && slices.ContainsFunc(records, func(x store.Record) bool { return x.Seq == f.Seq && x.Claim == p.Record.Claim })
			// While the store's clock was wrong, a worker may have reset the ledger by it. That is one until it
			// is superseded, too.
			newest := records[len(records)-1]
			reset := o.Faults.WrongClocks > 0 && newest.Kind == store.KindReset && f.Seq == newest.Seq
			// A store that loses what nobody has read yet has let two work at once, which verify says.
			beside := o.Faults.Losses > 0 && f.Code == verify.BesideLost
			// What nothing has superseded yet is a fault.
			if f.Severity == verify.Fault && !own && !reset && !beside {
				wrong = append(wrong, fmt.Sprintf("verify %s: record %d: %s: %s", workerType, f.Seq, f.Code, f.Text))
			}
		}
	}
	return wrong
}
