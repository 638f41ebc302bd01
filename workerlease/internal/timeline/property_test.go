package timeline

import (
	"testing"
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

// contains: the interval contains store time whenever its assumptions hold: for
// settled readers if no clock jumped, and for unsettled ones even if it did.
func contains(t *rapid.T) {
	var l Line
	var u universe
	ppm := rapid.Int64Range(-1000, 1000)
	offsets := []int64{0} // of each clock that there was, to the true one
	right := func(settled int, off int64) {
		t.Helper()
		i := l.At(u.local, settled)
		if at := noon.Add(time.Duration(u.store + off)); i.Earliest.After(at) || i.Latest.Before(at) {
			t.Fatalf("At(%v, %d) = %v misses %v", u.local, settled, i, at)
		}
		if i.Latest.Before(i.Earliest) {
			t.Fatalf("At(%v, %d) = %v is turned around", u.local, settled, i)
		}
	}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			u.pass(passing(100*time.Hour).Draw(t, "pause"), ppm.Draw(t, "ppm"))
		case 4:
			if !l.known {
				continue
			}
			// Readers on the clock from before are right, too.
			by := rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "by")
			u.store += by
			for i := range offsets {
				offsets[i] -= by
			}
			offsets = append(offsets, 0)
			sent := u.local
			s := u.stampNow(t)
			s.Server = string(rune('a' + len(offsets)))
			if got := l.Add(s, sent, u.local); got != ServerChanged && got != Jumped {
				t.Fatalf("Add = %v for another server", got)
			}
		default:
			sent := u.local
			u.pass(passing(10*time.Second).Draw(t, "before"), ppm.Draw(t, "ppm"))
			s := u.stampNow(t)
			if len(offsets) > 1 {
				s.Server = string(rune('a' + len(offsets)))
			}
			u.pass(passing(10*time.Second).Draw(t, "after"), ppm.Draw(t, "ppm"))
			if got := l.Add(s, sent, u.local); got == Jumped || got == Rejected {
				t.Fatalf("Add = %v though nothing jumped", got)
			}
		}
		if !l.known {
			continue
		}
		for settled := range l.Epoch() + 1 {
			for _, off := range offsets[settled:] {
				right(settled, off)
			}
		}
	}
}

func TestPropertyTheIntervalContainsStoreTime(t *testing.T) { rapid.Check(t, contains) }
