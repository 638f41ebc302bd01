package timeline

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/store"
)

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func TestIntervalKnowsItsMiddleAndEdges(t *testing.T) {
	i := Interval{Earliest: noon, Latest: noon.Add(10 * time.Millisecond)}
	for edge, want := range map[Edge]time.Duration{Earliest: 0, Mid: 5 * time.Millisecond, Latest: 10 * time.Millisecond} {
		if got := i.At(edge).Sub(noon); got != want {
			t.Errorf("At(%v) = noon + %v, want + %v", edge, got, want)
		}
	}
	if got := i.Uncertainty(); got != 5*time.Millisecond {
		t.Errorf("Uncertainty() = %v, want 5ms", got)
	}
	if !i.Known() || (Interval{}).Known() {
		t.Errorf("Known() = %v, and %v for the zero Interval; want true, false", i.Known(), Interval{}.Known())
	}
}

func TestUntilIsZeroOnlyWhenReachedAndElseAtLeastAMillisecond(t *testing.T) {
	i := Interval{Earliest: noon, Latest: noon.Add(10 * time.Millisecond)}
	for _, c := range []struct {
		edge Edge
		from time.Duration // of the edge to the time waited for
		want time.Duration
	}{
		{Earliest, -time.Hour, 0},
		{Earliest, 0, 0},
		{Earliest, 1, time.Millisecond},
		{Earliest, 999 * time.Microsecond, time.Millisecond + 2},
		{Earliest, 999 * time.Second, 1000*time.Second + 2},
		{Mid, 0, 0},
		{Mid, 1, time.Millisecond},
		{Mid, time.Second, time.Second},
		{Latest, -1, 0},
		{Latest, 0, 0},
		{Latest, 1, time.Millisecond},
		{Latest, 1001 * time.Second, 1000*time.Second - 2},
	} {
		if got := i.Until(i.At(c.edge).Add(c.from), c.edge); got != c.want {
			t.Errorf("Until(%v + %v, %v) = %v, want %v", c.edge, c.from, c.edge, got, c.want)
		}
	}
}

func TestUntilAFarFutureDoesNotOverflow(t *testing.T) {
	i := Interval{Earliest: noon, Latest: noon}
	for _, edge := range []Edge{Earliest, Mid, Latest} {
		for _, at := range []time.Time{noon.Add(math.MaxInt64), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
			if got := i.Until(at, edge); got < century/2 {
				t.Errorf("Until(%v, %v) = %v, want about a century", at, edge, got)
			}
		}
	}
}

// Whatever the line knows, and however its bounds were rounded: who waits for
// Earliest finds it reached, and who waits for Latest is not late by more than
// the least wait.
func TestPropertyUntilIsLongEnoughAndNotTooLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawnLine(t)
		local := l.fresh + time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "local"))
		settled := rapid.IntRange(0, 3).Draw(t, "settled")
		now := l.At(local, settled)
		d := time.Duration(rapid.Int64Range(1, int64(10000*time.Hour)).Draw(t, "away"))
		edge := rapid.SampledFrom([]Edge{Earliest, Mid, Latest}).Draw(t, "edge")
		at := now.At(edge).Add(d)
		wait := now.Until(at, edge)
		if wait < time.Millisecond {
			t.Fatalf("Until = %v: less than a millisecond", wait)
		}
		then := l.At(local+wait, settled)
		switch edge {
		case Earliest:
			if then.Earliest.Before(at) {
				t.Fatalf("after waiting %v for %v, Earliest is %v short", wait, d, at.Sub(then.Earliest))
			}
		case Latest:
			if wait > time.Millisecond && then.Latest.After(at) {
				t.Fatalf("after waiting %v for %v, Latest is %v too late", wait, d, then.Latest.Sub(at))
			}
		case Mid:
			if off := then.Mid().Sub(at).Abs(); wait > time.Millisecond && off > 2 {
				t.Fatalf("after waiting %v for %v, the middle is off by %v", wait, d, off)
			}
		}
	})
}

// universe is a store whose time runs at a changing rate, never more than
// MaxDrift off that of the local clock.
type universe struct {
	local time.Duration
	store int64 // ns since noon: true store time
}

// pass lets local time pass.
func (u *universe) pass(d time.Duration, ppm int64) {
	u.local += d
	u.store += int64(d) + int64(d)/1_000_000*ppm
}

// stampNow is a stamp that is cut down, aged and skewed within what it claims.
func (u *universe) stampNow(t *rapid.T) store.Stamp {
	s := store.Stamp{
		Granularity: rapid.SampledFrom([]time.Duration{1, ms, time.Second}).Draw(t, "granularity"),
		MaxAge:      rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "maxAge"),
		Skew:        rapid.SampledFrom([]time.Duration{0, 0, 100 * ms}).Draw(t, "skew"),
		Server:      "a",
	}
	at := noon.Add(time.Duration(u.store))
	at = at.Add(-time.Duration(rapid.Int64Range(0, int64(s.MaxAge)).Draw(t, "age")))
	at = at.Add(time.Duration(rapid.Int64Range(-int64(s.Skew), int64(s.Skew)).Draw(t, "off")))
	s.Time = at.Truncate(s.Granularity)
	return s
}

func passing(most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		scale := rapid.SampledFrom([]time.Duration{1, time.Microsecond, ms, time.Second, time.Minute, time.Hour}).Draw(t, "scale")
		return min(scale*time.Duration(rapid.Int64Range(0, 2000).Draw(t, "times")), most)
	})
}

// drawnLine is a line with a few samples, jumps among them.
func drawnLine(t *rapid.T) *Line {
	var l Line
	u := universe{}
	for range rapid.IntRange(1, 8).Draw(t, "samples") {
		u.pass(passing(24*time.Hour).Draw(t, "pause"), 0)
		if rapid.IntRange(0, 3).Draw(t, "jump") == 0 {
			u.store += rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "by")
		}
		sent := u.local
		s := u.stampNow(t)
		u.pass(passing(10*time.Second).Draw(t, "trip"), 0)
		l.Add(s, sent, u.local)
	}
	return &l
}
