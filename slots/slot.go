package slots

import (
	"iter"
	"time"
)

// The bounds of an interval, and the default.
const (
	DefaultInterval = 5 * time.Minute
	MinInterval     = 100 * time.Millisecond
	MaxInterval     = 366 * 24 * time.Hour
)

// Slot is the half-open interval [Start, End). Both ends are in UTC, whole
// milliseconds and without a monotonic reading, so slots from this package can
// be compared with ==.
type Slot struct{ Start, End time.Time }

// Length is End − Start.
func (s Slot) Length() time.Duration { return s.End.Sub(s.Start) }

// Contains reports whether t lies in the slot: Start <= t < End.
func (s Slot) Contains(t time.Time) bool { return !t.Before(s.Start) && t.Before(s.End) }

// IsZero reports whether s is the zero Slot, which stands for "none".
func (s Slot) IsZero() bool { return s.Start.IsZero() && s.End.IsZero() }

// String is the slot as "[START, END)", in RFC 3339.
func (s Slot) String() string {
	return "[" + instant(s.Start) + ", " + instant(s.End) + ")"
}

// Schedule partitions time into slots. Make one with [Every], [Cron] or
// [Parse], inside [Must] if it is a constant of the program.
//
// Implementations are immutable, safe for concurrent use and read no clock. For
// all t: At(t).Start <= t < At(t).End; Next(t).Start == At(t).End; and At(s.Start) == s
// for every slot s that they return. Outside the years 1 to 9999 they return the zero
// Slot. [Check] finds implementations that break these promises, and workers refuse them.
type Schedule interface {
	// At is the slot that contains t.
	At(t time.Time) Slot
	// Next is the first slot whose Start is strictly after t.
	Next(t time.Time) Slot
	// String is the schedule as text. Parse makes an equal schedule from it.
	String() string
}

// Must returns s, or panics if err is not nil. It is for schedules that are
// constants of the program, such as one in a literal of options:
//
//	Schedule: slots.Must(slots.Cron("0 2 * * *", "Europe/Berlin")),
//
// The panic value is err, which names the spec. Don't use Must for a spec that a
// user gives.
func Must(s Schedule, err error) Schedule {
	if err != nil {
		panic(err)
	}
	return s
}

// Upcoming yields the slots of s that start after t, in order. It ends only with the
// year 9999, so the caller breaks the loop.
func Upcoming(s Schedule, t time.Time) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for after := t; ; {
			next := s.Next(after)
			// A foreign schedule may not advance. Stop rather than yield the same slot
			// forever.
			if !next.Start.After(after) || !yield(next) {
				return
			}
			after = next.Start
		}
	}
}

// The first and the last second of the years that schedules know.
const (
	minSecond = -62135596800 // 0001-01-01T00:00:00Z
	maxSecond = 253402300799 // 9999-12-31T23:59:59Z
)

// known reports whether t lies in the years that schedules know.
func known(t time.Time) bool { return minSecond <= t.Unix() && t.Unix() <= maxSecond }

// slotOf makes the slot between two instants in Unix milliseconds, or the zero
// Slot if it reaches outside of the years that schedules know.
func slotOf(start, end int64) Slot {
	s := Slot{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC()}
	if !known(s.Start) || !known(s.End) {
		return Slot{}
	}
	return s
}
