package timeline

import (
	"math"
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
	if l.Epoch() != 0 || l.Jumps() != 0 || l.server != "" {
		t.Errorf("Epoch, Jumps, Server = %d, %d, %q, want none", l.Epoch(), l.Jumps(), l.server)
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
			if got := known.At(time.Second, 0); got != want || known.server != "a" || known.Epoch() != 0 {
				t.Errorf("a rejected sample changed the line to %v, server %q, epoch %d", got, known.server, known.Epoch())
			}
		})
	}
}

func TestAnotherServerGivesTheHullUntilSettled(t *testing.T) {
	var l Line
	sample(t, &l, store.Stamp{Time: noon, Server: "a"}, 0, 10*ms, First)
	sample(t, &l, store.Stamp{Time: noon.Add(15 * ms), Server: "b"}, 10*ms, 20*ms, ServerChanged)
	if l.Epoch() != 1 || l.Jumps() != 0 || l.server != "b" {
		t.Fatalf("Epoch, Jumps, Server = %d, %d, %q, want 1, 0, b", l.Epoch(), l.Jumps(), l.server)
	}
	// Settled: b alone, not intersected with a. Unsettled: both.
	expect(t, &l, 20*ms, 1, 15*ms, 25*ms+10*time.Microsecond+1)
	expect(t, &l, 20*ms, 0, 10*ms-10*time.Microsecond-1, 25*ms+10*time.Microsecond+1)
	// More of b narrows b alone.
	sample(t, &l, store.Stamp{Time: noon.Add(18 * ms), Server: "b"}, 20*ms, 20*ms, Narrowed)
	expect(t, &l, 20*ms, 1, 18*ms, 18*ms+1)
	expect(t, &l, 20*ms, 0, 10*ms-10*time.Microsecond-1, 20*ms+10*time.Microsecond+1+10*time.Microsecond+1)
}

func TestContradictionIsAJumpWithTheHullUntilSettled(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		by     time.Duration
	}{
		"forward":             {"a", time.Hour},
		"back":                {"a", -time.Hour},
		"with another server": {"b", time.Hour},
		"by a little":         {"a", 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			var l Line
			sample(t, &l, store.Stamp{Time: noon, Server: "a"}, 0, 0, First)
			sample(t, &l, store.Stamp{Time: noon.Add(10*ms + c.by), Server: c.server}, 10*ms, 10*ms, Jumped)
			if l.Epoch() != 1 || l.Jumps() != 1 || l.server != c.server {
				t.Fatalf("Epoch, Jumps, Server = %d, %d, %q, want 1, 1, %q", l.Epoch(), l.Jumps(), l.server, c.server)
			}
			expect(t, &l, 10*ms, 1, 10*ms+c.by, 10*ms+c.by+1)
			hull := l.At(10*ms, 0)
			for _, old := range []time.Duration{10 * ms, 10*ms + c.by} {
				if at := noon.Add(old); hull.Earliest.After(at) || hull.Latest.Before(at) {
					t.Errorf("the hull %v misses %v", hull, at)
				}
			}
		})
	}
}

func TestManyJumpsMergeButStayConservative(t *testing.T) {
	var l Line
	clocks := []time.Duration{0}
	sample(t, &l, store.Stamp{Time: noon}, 0, 0, First)
	for n := 1; n <= 3*maxPast; n++ {
		at := time.Duration(n) * time.Second
		// Each clock is farther off than the one before, to both sides in turn.
		off := time.Duration(n*n) * time.Minute
		if n%2 == 0 {
			off = -off
		}
		clocks = append(clocks, off)
		sample(t, &l, store.Stamp{Time: noon.Add(at + off)}, at, at, Jumped)
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

func TestNamesOfEdgesAndOutcomes(t *testing.T) {
	for got, want := range map[string]string{
		Earliest.String(): "earliest", Latest.String(): "latest", Mid.String(): "mid",
		Rejected.String(): "rejected", First.String(): "first", Narrowed.String(): "narrowed",
		ServerChanged.String(): "server changed", Jumped.String(): "jumped",
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
