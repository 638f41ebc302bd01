package timeline

import (
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/store"
)

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
