package timeline

import "time"

// MaxDrift is ρ, the most by which the rates of the local clock and of store
// time may differ, counted by the local clock: 1000 ppm. NTP slews at 500 ppm at
// most, and quartz is ten times better than that. Where store time is the local
// clock itself, and its stamps say so, the rates are the same.
const MaxDrift = 1.0 / perDrift

// Interval contains store time: Earliest <= store time <= Latest. The zero
// Interval says that nothing is known.
type Interval struct {
	Earliest, Latest time.Time

	steady bool // It doesn't widen.
}

// Known reports whether anything is known of store time.
func (i Interval) Known() bool { return !i.Latest.IsZero() }

// Uncertainty is half the width of the interval.
func (i Interval) Uncertainty() time.Duration { return i.Latest.Sub(i.Earliest) / 2 }

// Steady reports that the interval doesn't widen while the local clock goes on.
func (i Interval) Steady() bool { return i.steady }

// Drift is how much wider, on either side, the interval is after d by the local clock.
func (i Interval) Drift(d time.Duration) time.Duration {
	if i.steady {
		return 0
	}
	return time.Duration(float64(d) * MaxDrift)
}

// Mid is the middle of the interval: the best guess, good for courtesy between
// workers, never for safety.
func (i Interval) Mid() time.Time { return i.Earliest.Add(i.Uncertainty()) }

// Edge is a point of an interval.
type Edge int

// The edges.
const (
	Earliest Edge = iota
	Mid
	Latest
)

// String names the edge.
func (e Edge) String() string { return [...]string{"earliest", "mid", "latest"}[e] }

// At returns the edge's time.
func (i Interval) At(e Edge) time.Time {
	switch e {
	case Earliest:
		return i.Earliest
	case Latest:
		return i.Latest
	default:
		return i.Mid()
	}
}

// Until is how long to wait, by the local clock, until the given edge of the
// interval reaches t: zero if it has, else at least 1 ms, so that a wait rounded
// down to nothing can't spin. Unless the interval is steady, its edges move at different
// speeds: it widens while one waits. An Earliest wait is never too short; a Latest wait is
// never too long, but for that least millisecond. Waits end after a century.
func (i Interval) Until(t time.Time, e Edge) time.Duration {
	d := min(t.Sub(i.At(e)), century)
	if d <= 0 {
		return 0
	}
	// An edge also moves by the nanosecond that widening rounds up to.
	switch {
	case i.steady || e == Mid:
	case e == Earliest:
		d += (d+1)/(perDrift-1) + 2
	case e == Latest:
		d -= d/(perDrift+1) + 2
	}
	return max(d, time.Millisecond)
}

// century keeps the arithmetic of waits from overflowing.
const century = 100 * 365 * 24 * time.Hour

// perDrift is 1/MaxDrift, for exact arithmetic on whole nanoseconds.
const perDrift = 1000
