package timeline

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

const ms = time.Millisecond

// sample adds a stamp and fails the test unless the outcome is as wanted.
func sample(t *testing.T, l *Line, s store.Stamp, sent, received time.Duration, want Outcome) {
	t.Helper()
	if got := l.Add(s, sent, received); got != want {
		t.Fatalf("Add(%v, %v, %v) = %v, want %v", s, sent, received, got, want)
	}
}

// expect fails the test unless the line says [noon + earliest, noon + latest].
func expect(t *testing.T, l *Line, local time.Duration, settled int, earliest, latest time.Duration) {
	t.Helper()
	i := l.At(local, settled)
	if i.Earliest.Sub(noon) != earliest || i.Latest.Sub(noon) != latest {
		t.Fatalf("At(%v, %d) = noon + [%v, %v], want + [%v, %v]",
			local, settled, i.Earliest.Sub(noon), i.Latest.Sub(noon), earliest, latest)
	}
}

func TestZeroLineKnowsNothing(t *testing.T) {
	var l Line
	if i := l.At(time.Hour, 0); i.Known() || i != (Interval{}) {
		t.Errorf("At = %v, want the zero Interval", i)
	}
	if l.Epoch() != 0 || l.Jumps() != 0 {
		t.Errorf("Epoch, Jumps = %d, %d, want none", l.Epoch(), l.Jumps())
	}
}

func TestOneSampleBoundsStoreTimeByTripGranularityAgeAndSkew(t *testing.T) {
	for _, c := range []struct {
		name             string
		stamp            store.Stamp
		trip             time.Duration
		earliest, latest time.Duration
	}{
		{"exact and at once", store.Stamp{}, 0, 0, 1},
		{"a trip", store.Stamp{}, 20 * ms, 0, 20*ms + 20*time.Microsecond + 1},
		{"cut to milliseconds", store.Stamp{Granularity: ms}, 0, 0, ms + 1},
		{"cached for a second", store.Stamp{MaxAge: time.Second}, 0, 0, time.Second + 1},
		{"servers apart", store.Stamp{Skew: 100 * ms}, 0, -100 * ms, 100*ms + 1},
		{
			"all of it",
			store.Stamp{Granularity: time.Second, MaxAge: time.Second, Skew: 250 * ms},
			100 * ms,
			-250 * ms, 2350*ms + 100*time.Microsecond + 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Line
			c.stamp.Time = noon
			sample(t, &l, c.stamp, time.Hour, time.Hour+c.trip, First)
			expect(t, &l, time.Hour+c.trip, 0, c.earliest, c.latest)
		})
	}
}

func TestIntervalWidensWithTheAgeOfTheSampleInBothDirections(t *testing.T) {
	var l Line
	sample(t, &l, store.Stamp{Time: noon}, time.Hour, time.Hour, First)
	// 1000 ppm of 1000 s is 1 s; each reading rounds up by a nanosecond.
	expect(t, &l, time.Hour+1000*time.Second, 0, 999*time.Second-1, 1001*time.Second+2)
	expect(t, &l, time.Hour-1000*time.Second, 0, -1001*time.Second-1, -999*time.Second+2)
	if got := l.Age(time.Hour + 3*time.Second); got != 3*time.Second {
		t.Errorf("Age = %v, want 3s", got)
	}
	if got := l.Age(0); got != 0 {
		t.Errorf("Age before the sample = %v, want 0", got)
	}
}

func TestSamplesAreIntersected(t *testing.T) {
	var l Line
	sample(t, &l, store.Stamp{Time: noon}, 0, 100*ms, First)
	// The second sample was made 100 ms later, of which 80 ms on the way.
	sample(t, &l, store.Stamp{Time: noon.Add(110 * ms)}, 120*ms, 200*ms, Narrowed)
	// Lower bound by the second, 110 ms at 200 ms; upper bound by the second too.
	expect(t, &l, 200*ms, 0, 110*ms, 190*ms+80*time.Microsecond+1)
	// A slow one says less than is known, and changes nothing but the widening.
	before := l.At(10*time.Second, 0)
	sample(t, &l, store.Stamp{Time: noon.Add(5 * time.Second)}, ms, 10*time.Second, Narrowed)
	if after := l.At(10*time.Second, 0); after != before {
		t.Errorf("after a slow sample: %v, want %v as before", after, before)
	}
	if l.Age(10*time.Second) != 0 {
		t.Errorf("Age = %v, want 0", l.Age(10*time.Second))
	}
}

func TestSamplesMayArriveOutOfOrder(t *testing.T) {
	var l Line
	sample(t, &l, store.Stamp{Time: noon.Add(10 * time.Second)}, 10*time.Second, 10*time.Second+50*ms, First)
	sample(t, &l, store.Stamp{Time: noon.Add(5 * time.Second)}, 5*time.Second, 5*time.Second, Narrowed)
	// The older one was exact: shifted by 5.05 s, it still gives the better lower
	// bound. The upper one is the newer's.
	expect(t, &l, 10*time.Second+50*ms, 0, 10*time.Second+50*ms-5050*time.Microsecond-1, 10*time.Second+50*ms+50*time.Microsecond+1)
	if got := l.Age(11 * time.Second); got != 950*ms {
		t.Errorf("Age = %v, want 950ms since the newest", got)
	}
}

func TestImplausibleSamplesAreRejectedAndIgnored(t *testing.T) {
	var known, unknown Line
	sample(t, &known, store.Stamp{Time: noon, Server: "a"}, 0, ms, First)
	want := known.At(time.Second, 0)
	for name, c := range map[string]struct {
		stamp          store.Stamp
		sent, received time.Duration
	}{
		"zero":                        {store.Stamp{}, 0, ms},
		"before 1970":                 {store.Stamp{Time: time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)}, 0, ms},
		"in 2200":                     {store.Stamp{Time: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)}, 0, ms},
		"in 99999":                    {store.Stamp{Time: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)}, 0, ms},
		"received before it was sent": {store.Stamp{Time: noon}, ms, 0},
		"negative granularity":        {store.Stamp{Time: noon, Granularity: -1}, 0, ms},
		"negative age":                {store.Stamp{Time: noon, MaxAge: -1}, 0, ms},
		"negative skew":               {store.Stamp{Time: noon, Skew: -1}, 0, ms},
		"an age that overflows":       {store.Stamp{Time: noon, MaxAge: math.MaxInt64}, 0, ms},
		"a skew that overflows":       {store.Stamp{Time: noon, Skew: math.MaxInt64}, 0, ms},
		"a trip that overflows":       {store.Stamp{Time: noon}, math.MinInt64, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			sample(t, &unknown, c.stamp, c.sent, c.received, Rejected)
			sample(t, &known, c.stamp, c.sent, c.received, Rejected)
			if unknown.At(0, 0).Known() {
				t.Error("a rejected sample made the line known")
			}
			if got := known.At(time.Second, 0); got != want || len(known.clocks) != 1 || known.Epoch() != 0 {
				t.Errorf("a rejected sample changed the line to %v, %d clocks, epoch %d", got, len(known.clocks), known.Epoch())
			}
		})
	}
}

func TestSamplesAtTheEdgesOfWhatIsPlausibleCount(t *testing.T) {
	for _, s := range []store.Stamp{{Time: time.Unix(0, 0).UTC()}, {Time: time.Date(2199, 12, 31, 23, 59, 59, 0, time.UTC)}, {Time: noon, Skew: longest}} {
		sample(t, new(Line), s, 0, ms, First)
	}
}

func TestAnotherServerThatAgreesNarrowsTheIntervalLikeTheSame(t *testing.T) {
	var l Line
	sample(t, &l, store.Stamp{Time: noon, Server: "a"}, 0, 10*ms, First)
	sample(t, &l, store.Stamp{Time: noon.Add(15 * ms), Server: "b"}, 10*ms, 20*ms, Narrowed)
	expect(t, &l, 20*ms, 0, 15*ms, 20*ms+20*time.Microsecond+2)
	if l.Epoch() != 0 || l.Jumps() != 0 {
		t.Errorf("Epoch, Jumps = %d, %d, want none", l.Epoch(), l.Jumps())
	}
}

// clocksAt adds samples, 10 ms apart and exact, of clocks that are off by given times,
// and returns the outcomes.
func clocksAt(l *Line, off ...time.Duration) (outcomes []Outcome) {
	for i, off := range off {
		at := time.Duration(i) * 10 * ms
		outcomes = append(outcomes, l.Add(store.Stamp{Time: noon.Add(at + off)}, at, at))
	}
	return outcomes
}

func TestAContradictionIsDecidedByAsManySamplesInARowAsConfirmAClock(t *testing.T) {
	for _, c := range []struct {
		name        string
		off         []time.Duration
		last        Outcome
		clocks      int
		epoch, jump int
	}{
		{"one wrong answer", []time.Duration{0, 0, 0, -time.Hour}, Contradicted, 2, 0, 1},
		{"and two good ones", []time.Duration{0, 0, 0, -time.Hour, 0, 0}, Narrowed, 2, 0, 1},
		{"and three", []time.Duration{0, 0, 0, -time.Hour, 0, 0, 0}, Dropped, 1, 0, 1},
		{"years ago", []time.Duration{0, 0, 0, -300000 * time.Hour, 0, 0, 0}, Dropped, 1, 0, 1},
		{"a wrong first answer", []time.Duration{time.Hour, 0, 0, 0}, Dropped, 1, 0, 1},
		{"two wrong answers, apart", []time.Duration{0, 0, 0, time.Hour, -time.Hour, 0, 0, 0}, Dropped, 1, 0, 2},
		{"a jump", []time.Duration{0, 0, 0, time.Hour, time.Hour}, Narrowed, 2, 0, 1},
		{"a jump, confirmed", []time.Duration{0, 0, 0, time.Hour, time.Hour, time.Hour}, Jumped, 1, 1, 1},
		{"a jump, by a little", []time.Duration{0, 0, 0, 1100 * time.Microsecond, 1100 * time.Microsecond, 1100 * time.Microsecond}, Jumped, 1, 1, 1},
		{"and back, by as many", []time.Duration{0, 0, 0, time.Hour, time.Hour, time.Hour, 0, 0, 0}, Narrowed, 2, 1, 2},
		{"and back, by twice as many", []time.Duration{0, 0, 0, time.Hour, time.Hour, time.Hour, 0, 0, 0, 0, 0, 0}, Jumped, 1, 2, 2},
		{"and on", []time.Duration{0, 0, 0, time.Hour, time.Hour, time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour}, Jumped, 1, 2, 2},
		{"in turn", []time.Duration{0, 0, 0, time.Hour, 0, time.Hour, 0, time.Hour, 0, time.Hour, 0, time.Hour}, Narrowed, 2, 0, 1},
		{"in turn, and then one alone", []time.Duration{0, time.Hour, 0, time.Hour, 0, time.Hour, time.Hour, time.Hour}, Jumped, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Line
			outcomes := clocksAt(&l, c.off...)
			if last := outcomes[len(outcomes)-1]; last != c.last || len(l.clocks) != c.clocks || l.Epoch() != c.epoch || l.Jumps() != c.jump {
				t.Fatalf("outcomes %v, %d clocks in question, epoch %d, jumps %d; want %v last, %d, %d, %d",
					outcomes, len(l.clocks), l.Epoch(), l.Jumps(), c.last, c.clocks, c.epoch, c.jump)
			}
			// Unsettled readers get all clocks that were confirmed, or are in question.
			at := time.Duration(len(c.off)-1) * 10 * ms
			all, newest := l.At(at, 0), c.off[len(c.off)-1]
			if on := noon.Add(at + newest); all.Earliest.After(on) || all.Latest.Before(on) {
				t.Errorf("the hull %v misses %v", all, on)
			}
			if c.epoch > 0 {
				if on := noon.Add(at + c.off[0]); all.Earliest.After(on) || all.Latest.Before(on) {
					t.Errorf("the hull %v misses %v, the clock from before", all, on)
				}
			}
			if settled := l.At(at, l.Epoch()); c.clocks == 1 && settled.Latest.Sub(settled.Earliest) > ms {
				t.Errorf("settled: %v, %v wide", settled, settled.Latest.Sub(settled.Earliest))
			}
		})
	}
}

func TestServersThatAnswerInTurnKeepBothBoundsFresh(t *testing.T) {
	var l Line
	for n := range time.Duration(3600) {
		l.Add(store.Stamp{Time: noon.Add(n*time.Second + n%2*300*ms)}, n*time.Second, n*time.Second+ms)
	}
	if i := l.At(3600*time.Second, 0); i.Latest.Sub(i.Earliest) > 310*ms {
		t.Errorf("after an hour: %v wide, want little more than the 300ms that they are apart", i.Latest.Sub(i.Earliest))
	}
}

// Servers that contradict each other now and then answer several times in a row. That ends
// no epoch each time; but a store that goes on with one of them is believed soon.
func TestServersThatAnswerInTurnStayInQuestionTogether(t *testing.T) {
	var l Line
	r := rand.New(rand.NewPCG(1, 2))
	at := time.Duration(0)
	add := func(server int) {
		at += time.Second
		l.Add(store.Stamp{Time: noon.Add(at + time.Duration(server)*300*ms)}, at, at+ms)
	}
	for range 3600 {
		add(r.IntN(3))
	}
	if l.Epoch() > 10 || l.Jumps() > 20 {
		t.Errorf("in an hour: %d epochs, %d contradictions, want 10 and 20 at most", l.Epoch(), l.Jumps())
	}
	for range Confirm << maxReturns {
		add(2)
	}
	if i := l.At(at, l.Epoch()); i.Latest.Sub(i.Earliest) > 2*ms {
		t.Errorf("after %d answers of one server: %v wide, want 2ms at most", Confirm<<maxReturns, i.Latest.Sub(i.Earliest))
	}
}

// A clock that comes back after long is as new as any.
func TestAClockThatComesBackAfterLongIsDecidedAsSoon(t *testing.T) {
	var l Line
	clocksAt(&l, 0, 0, 0, time.Hour, time.Hour, time.Hour)
	for n := range time.Duration(Confirm) {
		at := recur + time.Second + n*ms
		l.Add(store.Stamp{Time: noon.Add(at)}, at, at)
	}
	if l.Epoch() != 2 {
		t.Errorf("Epoch() = %d, want 2", l.Epoch())
	}
}

func TestManyJumpsMergeButStayConservative(t *testing.T) {
	var l Line
	clocks := []time.Duration{}
	for n := range 3 * maxPast {
		// Each clock is farther off than the one before, to both sides in turn.
		off := time.Duration(n*n) * time.Minute
		if n%2 == 0 {
			off = -off
		}
		clocks = append(clocks, off)
		at := time.Duration(n) * time.Second
		for range Confirm {
			l.Add(store.Stamp{Time: noon.Add(at + off)}, at, at)
		}
		if l.Epoch() != n {
			t.Fatalf("Epoch() = %d after %d jumps", l.Epoch(), n)
		}
		for settled := 0; settled <= n; settled++ {
			i := l.At(at, settled)
			for _, off := range clocks[settled:] {
				if c := noon.Add(at + off); i.Earliest.After(c) || i.Latest.Before(c) {
					t.Fatalf("after %d jumps, settled up to %d: %v misses %v", n, settled, i, c)
				}
			}
		}
		expect(t, &l, at, n, at+off, at+off+1)
	}
	if len(l.past) > maxPast {
		t.Errorf("%d bounds are kept, want at most %d", len(l.past), maxPast)
	}
}

// Answers that contradict one another without end leave few clocks in question, and
// none of them is lost.
func TestManyClocksInQuestionMergeButStayConservative(t *testing.T) {
	var l Line
	for n := range time.Duration(3 * maxClocks) {
		l.Add(store.Stamp{Time: noon.Add(n * time.Hour)}, 0, 0)
		if i := l.At(0, 0); i.Earliest.After(noon) || i.Latest.Before(noon.Add(n*time.Hour)) || len(l.clocks) > maxClocks {
			t.Fatalf("after %d contradictions: %v, %d clocks", n, i, len(l.clocks))
		}
	}
}

func TestNamesOfEdgesAndOutcomes(t *testing.T) {
	for got, want := range map[string]string{
		Earliest.String(): "earliest", Latest.String(): "latest", Mid.String(): "mid",
		Rejected.String(): "rejected", First.String(): "first", Narrowed.String(): "narrowed",
		Contradicted.String(): "contradicted", Dropped.String(): "dropped", Jumped.String(): "jumped",
	} {
		if got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	var l Line
	l.Add(store.Stamp{Time: noon}, 0, ms)
	for b.Loop() {
		l.At(time.Hour, 0)
	}
}

func BenchmarkAtUnsettledByFourJumps(b *testing.B) {
	var l Line
	for n := range time.Duration(5) {
		l.Add(store.Stamp{Time: noon.Add(n * time.Hour)}, n, n)
	}
	for b.Loop() {
		l.At(time.Hour, 0)
	}
}

func BenchmarkAdd(b *testing.B) {
	var l Line
	s := store.Stamp{Time: noon, Granularity: ms, Skew: 100 * ms, Server: "a"}
	for b.Loop() {
		l.Add(s, 0, ms)
	}
}
