package slots_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

func TestEveryCutsOneGridForAllObservers(t *testing.T) {
	for _, c := range []struct {
		interval       time.Duration
		at, start, end string
	}{
		{5 * time.Minute, "2025-01-01T12:01:30Z", "2025-01-01T12:00:00Z", "2025-01-01T12:05:00Z"},
		{5 * time.Minute, "2025-01-01T12:05:00Z", "2025-01-01T12:05:00Z", "2025-01-01T12:10:00Z"},
		{10 * time.Minute, "2025-01-01T12:01:00Z", "2025-01-01T12:00:00Z", "2025-01-01T12:10:00Z"},
		// 7 min across midnight: the same slot from both sides.
		{7 * time.Minute, "2025-01-01T23:59:30Z", "2025-01-01T23:59:00Z", "2025-01-02T00:06:00Z"},
		{7 * time.Minute, "2025-01-02T00:00:30Z", "2025-01-01T23:59:00Z", "2025-01-02T00:06:00Z"},
		// Longer than a day.
		{36 * time.Hour, "2025-01-01T12:00:00Z", "2025-01-01T00:00:00Z", "2025-01-02T12:00:00Z"},
		{7 * 24 * time.Hour, "2025-01-01T12:00:00Z", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"},
		{slots.MaxInterval, "1970-01-05T00:00:00Z", "1970-01-05T00:00:00Z", "1971-01-06T00:00:00Z"},
		// Around and before the anchor.
		{7 * time.Minute, "1970-01-05T00:00:00Z", "1970-01-05T00:00:00Z", "1970-01-05T00:07:00Z"},
		{7 * time.Minute, "1970-01-04T23:59:59Z", "1970-01-04T23:53:00Z", "1970-01-05T00:00:00Z"},
		{7 * time.Minute, "1970-01-04T23:53:00Z", "1970-01-04T23:53:00Z", "1970-01-05T00:00:00Z"},
		{24 * time.Hour, "1901-12-13T20:45:52Z", "1901-12-13T00:00:00Z", "1901-12-14T00:00:00Z"},
		// Other zones' readings of an instant.
		{time.Hour, "2025-01-01T12:10:00+05:45", "2025-01-01T06:00:00Z", "2025-01-01T07:00:00Z"},
		{slots.MinInterval, "2025-01-01T00:00:00.199999999Z", "2025-01-01T00:00:00.1Z", "2025-01-01T00:00:00.2Z"},
		{slots.MinInterval, "1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.9Z", "1970-01-01T00:00:00Z"},
	} {
		s := slots.Must(slots.Every(c.interval))
		want := slots.Slot{Start: instant(t, c.start), End: instant(t, c.end)}
		at := instant(t, c.at)
		if got := s.At(at); got != want {
			t.Errorf("Every(%v).At(%s) = %v, want %v", c.interval, c.at, got, want)
		}
		next := slots.Slot{Start: want.End, End: want.End.Add(c.interval)}
		if got := s.Next(at); got != next {
			t.Errorf("Every(%v).Next(%s) = %v, want %v", c.interval, c.at, got, next)
		}
	}
}

func TestEveryReturnsComparableTimes(t *testing.T) {
	s := slots.Must(slots.Every(time.Hour))
	now := time.Now() // with a monotonic reading and a local zone
	if got, want := s.At(now), s.At(now.UTC().Round(0)); got != want {
		t.Errorf("At(with monotonic reading) = %#v, want %#v", got, want)
	}
	if got := s.At(now).Start; got.Location() != time.UTC || got != got.Round(0) {
		t.Errorf("At(now).Start = %v, want UTC without a monotonic reading", got)
	}
}

func TestEveryRefusesOddIntervals(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		want     string
	}{
		{0, "every 0s: the interval must be at least 100ms"},
		{-time.Minute, "every -1m0s: the interval must be at least 100ms"},
		{99 * time.Millisecond, "every 99ms: the interval must be at least 100ms"},
		{slots.MaxInterval + time.Millisecond, "every 8784h0m0.001s: the interval must be at most 8784h (366 days)"},
		{1<<63 - 1, "at most 8784h"},
		{time.Second + time.Microsecond, "every 1.000001s: the interval must be whole milliseconds"},
	} {
		if s, err := slots.Every(c.interval); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Every(%v) = %v, %v, want the error %q", c.interval, s, err, c.want)
		}
	}
	for _, interval := range []time.Duration{slots.MinInterval, slots.DefaultInterval, slots.MaxInterval} {
		if _, err := slots.Every(interval); err != nil {
			t.Errorf("Every(%v) = %v, want no error", interval, err)
		}
	}
}

func TestEveryHasATidyText(t *testing.T) {
	for interval, want := range map[time.Duration]string{
		5 * time.Minute:                "every 5m",
		time.Hour:                      "every 1h",
		90 * time.Minute:               "every 1h30m",
		time.Hour + 5*time.Second:      "every 1h0m5s",
		10 * time.Minute:               "every 10m",
		10 * time.Hour:                 "every 10h",
		70 * time.Second:               "every 1m10s",
		1500 * time.Millisecond:        "every 1.5s",
		100 * time.Millisecond:         "every 100ms",
		10 * time.Second:               "every 10s",
		slots.MaxInterval:              "every 8784h",
		time.Hour + 10*time.Minute:     "every 1h10m",
		2*time.Hour + time.Millisecond: "every 2h0m0.001s",
	} {
		s := slots.Must(slots.Every(interval))
		if got := s.String(); got != want {
			t.Errorf("Every(%v).String() = %q, want %q", interval, got, want)
		}
		if got, err := slots.Parse(want); err != nil || got != s {
			t.Errorf("Parse(%q) = %v, %v, want an equal schedule", want, got, err)
		}
	}
}
