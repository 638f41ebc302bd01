package priority_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/slotlease/slotlease/internal/fuzzed" // properties draw from the seed of the run
	"github.com/slotlease/slotlease/priority"
)

func TestLeadIsAQuarterOfTheSlotBeforeUpToTenSeconds(t *testing.T) {
	for _, c := range []struct {
		before, want, lead time.Duration
	}{
		{5 * time.Minute, 0, 10 * time.Second},
		{40 * time.Second, 0, 10 * time.Second},
		{39 * time.Second, 0, 9750 * time.Millisecond},
		{100 * time.Millisecond, 0, 25 * time.Millisecond},
		{24 * time.Hour, 0, 10 * time.Second},
		{5 * time.Minute, -time.Second, 10 * time.Second},
		{5 * time.Minute, time.Second, time.Second},
		{5 * time.Minute, time.Minute, time.Minute},
		{5 * time.Minute, 3 * time.Minute, 150 * time.Second},
		{24 * time.Hour, time.Hour, priority.MaxLead},
		{math.MaxInt64, math.MaxInt64, priority.MaxLead},
		{0, 0, 0},
		{0, time.Second, 0},
		{-time.Hour, time.Second, 0},
		{math.MinInt64, 0, 0},
		{1, math.MaxInt64, 0},
	} {
		if got := priority.Lead(c.before, c.want); got != c.lead {
			t.Errorf("Lead(%v, %v) = %v, want %v", c.before, c.want, got, c.lead)
		}
	}
}

func TestNewTurnsWidensStepsForSlowStores(t *testing.T) {
	const lead = 9 * time.Second
	for _, c := range []struct {
		lead, step, spread, want time.Duration
	}{
		{lead, 0, 0, 900 * time.Millisecond},
		{lead, 0, 100 * time.Millisecond, 900 * time.Millisecond},
		{lead, 0, 480 * time.Millisecond, 960 * time.Millisecond},
		{lead, 0, 500 * time.Millisecond, time.Second},
		{lead, 0, time.Hour, time.Second},
		{lead, 0, math.MaxInt64, time.Second},
		{lead, 0, -time.Second, 900 * time.Millisecond},
		{lead, 50 * time.Millisecond, 0, 50 * time.Millisecond},
		{lead, 50 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond},
		{lead, 2 * time.Second, 0, time.Second},
		{lead, -time.Second, 0, 900 * time.Millisecond},
		{lead, math.MinInt64, math.MinInt64, 900 * time.Millisecond},
		{0, time.Second, time.Second, 0},
		{-lead, time.Second, time.Second, 0},
		{8, 0, 5, 0},
		{9, 0, 5, 1},
		{time.Hour, 0, 0, priority.MaxLead / 10},
	} {
		want := priority.Turns{Lead: min(max(c.lead, 0), priority.MaxLead), Step: c.want}
		if got := priority.NewTurns(c.lead, c.step, c.spread); got != want {
			t.Errorf("NewTurns(%v, %v, %v) = %v, want %v", c.lead, c.step, c.spread, got, want)
		}
	}
}

func TestOffsetIsTheRungAndThePlaceWithinIt(t *testing.T) {
	l := priority.NewTurns(8*time.Second, 800*time.Millisecond, 0)
	const half, all = uint64(1 << 63), uint64(math.MaxUint64)
	for _, c := range []struct {
		p    int
		tie  priority.TieBreak
		held bool
		draw uint64
		want time.Duration
	}{
		{0, priority.Sticky, true, all, 0},
		{0, priority.Sticky, false, 0, 200 * time.Millisecond},
		{0, priority.Sticky, false, half, 400 * time.Millisecond},
		{0, priority.Sticky, false, all, 600*time.Millisecond - 1},
		{0, priority.Rotate, false, 0, 0},
		{0, priority.Rotate, false, half, 200 * time.Millisecond},
		{0, priority.Rotate, false, all, 400*time.Millisecond - 1},
		{0, priority.Rotate, true, all, 500 * time.Millisecond},
		{0, priority.Rotate, true, 0, 500 * time.Millisecond},
		{0, priority.Random, false, 0, 0},
		{0, priority.Random, true, half, 300 * time.Millisecond},
		{0, priority.Random, true, all, 600*time.Millisecond - 1},
		{0, priority.Spread, true, all, 0},
		{0, priority.Spread, false, 0, 400 * time.Millisecond},
		{0, priority.Spread, false, all, 600*time.Millisecond - 1},
		{3, priority.Sticky, true, 0, 2400 * time.Millisecond},
		{3, priority.Sticky, false, half, 2800 * time.Millisecond},
		{7, priority.Random, false, all, 6200*time.Millisecond - 1},
		// Outside of the priorities.
		{-1, priority.Sticky, true, 0, 0},
		{math.MinInt, priority.Sticky, true, 0, 0},
		{8, priority.Sticky, true, 0, 5600 * time.Millisecond},
		{math.MaxInt, priority.Sticky, true, 0, 5600 * time.Millisecond},
		// An unknown tie-break is Sticky.
		{0, priority.TieBreak(9), true, all, 0},
		{0, priority.TieBreak(-1), false, 0, 200 * time.Millisecond},
	} {
		if got := l.Offset(c.p, c.tie, c.held, c.draw); got != c.want {
			t.Errorf("%v.Offset(%d, %v, %v, %#x) = %v, want %v", l, c.p, c.tie, c.held, c.draw, got, c.want)
		}
	}
}

func TestAtCountsFromTheLeadBeforeTheBoundary(t *testing.T) {
	boundary := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	l := priority.NewTurns(10*time.Second, 0, 0)
	for p, want := range map[int]string{0: "11:59:50", 2: "11:59:52", 7: "11:59:57"} {
		if got := l.At(boundary, p, priority.Sticky, true, 0).Format(time.TimeOnly); got != want {
			t.Errorf("At(12:00, %d) = %v, want %v", p, got, want)
		}
	}
	for _, l := range []priority.Turns{{}, {Step: time.Second}, {Lead: -time.Second, Step: time.Second}} {
		if got := l.At(boundary, 7, priority.Random, false, math.MaxUint64); !got.Equal(boundary) {
			t.Errorf("%v.At(%v) = %v, want the boundary", l, boundary, got)
		}
	}
}

// checkOffset checks what Offset promises, for any turn schedule.
func checkOffset(t testing.TB, l priority.Turns, p int, tie priority.TieBreak, held, otherHeld bool, draw, otherDraw uint64) {
	t.Helper()
	got := l.Offset(p, tie, held, draw)
	step := l.Offset(1, priority.Sticky, true, 0)
	turn := time.Duration(min(max(p, priority.Highest), priority.Lowest)) * step
	if got < turn || got >= turn+max(step, 1) {
		t.Fatalf("%v.Offset(%d, %v, %v, %#x) = %v, want it in [%v, %v)", l, p, tie, held, draw, got, turn, turn+step)
	}
	if l.Lead > 0 && got >= l.Lead {
		t.Fatalf("%v.Offset(%d, %v, %v, %#x) = %v, want it before the boundary", l, p, tie, held, draw, got)
	}
	for lower := min(max(p, priority.Highest), priority.Lowest) + 1; lower <= priority.Lowest; lower++ {
		if other := l.Offset(lower, tie, otherHeld, otherDraw); other < got+step/4 || step > 0 && other == got {
			t.Fatalf("%v.Offset(%d, %v, %v, %#x) = %v, want it %v after %v of priority %d", l, lower, tie, otherHeld, otherDraw, other, step/4, got, p)
		}
	}
	if other := l.Offset(p, tie, !held, otherDraw); step >= 8 && tie != priority.Random {
		holderFirst := held == (got < other)
		if holderFirst != (tie != priority.Rotate) {
			t.Fatalf("%v.Offset(%d, %v, …) = %v for held = %v and %v for held = %v", l, p, tie, got, held, other, !held)
		}
		if gap := (got - other).Abs(); gap < step/8 {
			t.Fatalf("%v: the holder and another worker are %v apart with %v, want a head start of %v", l, gap, tie, step/8)
		}
	}
	if other := l.Offset(p, tie, held, otherDraw); draw <= otherDraw && other < got {
		t.Fatalf("%v.Offset(%d, %v, %v, …) = %v for the draw %#x and %v for %#x, want the larger draw not before", l, p, tie, held, got, draw, other, otherDraw)
	}
}

func TestOffsetsAreOrderedByPriorityAndBeforeTheBoundary(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := priority.NewTurns(
			time.Duration(rapid.Int64().Draw(r, "lead")), time.Duration(rapid.Int64().Draw(r, "step")), time.Duration(rapid.Int64().Draw(r, "spread")))
		if l.Lead < 0 || l.Lead > priority.MaxLead || l.Step < 0 || l.Step > l.Lead/9 {
			r.Fatalf("NewTurns = %v, want 0 <= Lead <= %v and 0 <= Step <= Lead/9", l, priority.MaxLead)
		}
		checkOffset(t, l, rapid.IntRange(-2, 9).Draw(r, "p"), priority.TieBreak(rapid.IntRange(0, 2).Draw(r, "tie")),
			rapid.Bool().Draw(r, "held"), rapid.Bool().Draw(r, "other held"), rapid.Uint64().Draw(r, "draw"), rapid.Uint64().Draw(r, "other draw"))
	})
}

func TestLeadIsBoundedByTheSlotBefore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		before, want := time.Duration(rapid.Int64().Draw(r, "before")), time.Duration(rapid.Int64().Draw(r, "want"))
		if got := priority.Lead(before, want); got < 0 || got > priority.MaxLead || got > max(before, 0)/2 {
			r.Fatalf("Lead(%v, %v) = %v, want it within 0, %v and half the slot", before, want, got, priority.MaxLead)
		}
	})
}

func FuzzOffset(f *testing.F) {
	f.Add(int64(10*time.Second), int64(time.Second), 0, 0, true, false, uint64(0), uint64(math.MaxUint64))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 7, 1, false, true, uint64(math.MaxUint64), uint64(0))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), -1, 2, false, false, uint64(1), uint64(1))
	f.Add(int64(9), int64(1), 3, 1, true, true, uint64(1<<63), uint64(1<<62))
	f.Add(int64(72), int64(8), math.MaxInt, -5, true, false, uint64(3), uint64(2))
	f.Fuzz(func(t *testing.T, lead, step int64, p, tie int, held, otherHeld bool, draw, otherDraw uint64) {
		checkOffset(t, priority.Turns{Lead: time.Duration(lead), Step: time.Duration(step)}, p, priority.TieBreak(tie), held, otherHeld, draw, otherDraw)
	})
}

// play lets equal workers compete for slots and returns, for each holder of a slot,
// how often each worker got the slot after it. If the holder is gone, nobody holds one.
func play(tie priority.TieBreak, slots int, gone bool) (won [3][3]int) {
	random := rand.New(rand.NewPCG(1, 2))
	l := priority.NewTurns(10*time.Second, 0, 0)
	holder := 0
	for range slots {
		winner, first := 0, time.Duration(math.MaxInt64)
		for w := range won {
			if offset := l.Offset(0, tie, w == holder && !gone, random.Uint64()); offset < first {
				winner, first = w, offset
			}
		}
		won[holder][winner]++
		holder = winner
	}
	return won
}

// chiSquare is how far counts are from being equal.
func chiSquare(counts ...int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	expected, x := float64(sum)/float64(len(counts)), 0.0
	for _, n := range counts {
		x += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	return x
}

// The values that chi-square exceeds once in a thousand times by chance, for 1
// and 2 degrees of freedom.
const (
	critical1 = 10.83
	critical2 = 13.82
)

func TestRotateIsFairAmongEqualWorkers(t *testing.T) {
	const n = 30_000
	won := play(priority.Rotate, n, false)
	for holder := range won {
		if won[holder][holder] != 0 {
			t.Errorf("worker %d followed itself %d times, want never", holder, won[holder][holder])
		}
		a, b := won[holder][(holder+1)%3], won[holder][(holder+2)%3]
		if x := chiSquare(a, b); x > critical1 {
			t.Errorf("after worker %d the others won %d and %d times: chi-square %.1f, want at most %.1f", holder, a, b, x, critical1)
		}
		// A worker's turns are closer to a third than by chance alone, since nobody has two in a row.
		if x := chiSquare(won[0][holder]+won[1][holder]+won[2][holder], n/3); x > critical1 {
			t.Errorf("worker %d won %v of %d slots, want a third", holder, won[0][holder]+won[1][holder]+won[2][holder], n)
		}
	}
}

// That Sticky keeps a holder that lives is for checkOffset to show, whatever is drawn.
func TestRandomAndStickyWithoutAHolderMakeNoDifferenceBetweenWorkers(t *testing.T) {
	for tie, gone := range map[priority.TieBreak]bool{priority.Random: false, priority.Sticky: true} {
		for holder, won := range play(tie, 30_000, gone) {
			if x := chiSquare(won[:]...); x > critical2 {
				t.Errorf("%v: after worker %d the workers won %v times: chi-square %.1f, want at most %.1f", tie, holder, won, x, critical2)
			}
		}
	}
}

func TestPlacesSpreadEvenlyOverTheRung(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	l := priority.NewTurns(10*time.Second, 0, 0) // steps of 1 s
	var tenths [10]int                           // of the three quarters that have places
	for range 100_000 {
		tenths[l.Offset(0, priority.Random, false, random.Uint64())/(75*time.Millisecond)]++
	}
	// The value that is exceeded once in a thousand times, for 9 degrees of freedom.
	if x := chiSquare(tenths[:]...); x > 27.88 {
		t.Errorf("the tenths of a turn got %v places: chi-square %.1f, want at most 27.88", tenths, x)
	}
}

func BenchmarkTurnsAt(b *testing.B) {
	l := priority.NewTurns(10*time.Second, 0, 0)
	boundary := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		l.At(boundary, 3, priority.Sticky, false, 1<<63)
	}
}
