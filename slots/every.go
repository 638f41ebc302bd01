package slots

import (
	"fmt"
	"strings"
	"time"
)

// anchor is Monday 1970-01-05T00:00:00Z in Unix milliseconds, where the grid of
// every interval has a boundary.
const anchor = 4 * 24 * 60 * 60 * 1000

// every is a schedule of slots of equal length, of which one begins from after the anchor; in
// milliseconds, and from is less than the interval.
type every struct{ interval, from int64 }

// Every makes a schedule of slots of one length, aligned to Monday
// 1970-01-05T00:00:00Z, so the grid is the same for all observers. The interval must
// be whole milliseconds from [MinInterval] to [MaxInterval].
func Every(interval time.Duration) (Schedule, error) {
	switch {
	case interval < MinInterval:
		return nil, fmt.Errorf("every %v: the interval must be at least %v", interval, MinInterval)
	case interval > MaxInterval:
		return nil, fmt.Errorf("every %v: the interval must be at most %v (366 days)", tidy(interval), tidy(MaxInterval))
	case interval%time.Millisecond != 0:
		return nil, fmt.Errorf("every %v: the interval must be whole milliseconds", interval)
	}
	return every{interval: interval.Milliseconds()}, nil
}

// EveryFrom is [Every] with boundaries that are counted from a time after midnight of that Monday,
// 1970-01-05T00:00:00Z: with 90 min from 30 min on, they are 00:30, 02:00, 03:30 and so on. An interval
// that doesn't divide a day is not counted anew each day, because the last slot of a day would be a shorter one. So
// all workers see one grid, in UTC. The time must be whole milliseconds; what it has beyond whole
// intervals counts.
func EveryFrom(interval, from time.Duration) (Schedule, error) {
	s, err := Every(interval)
	if err != nil {
		return nil, err
	}
	if from%time.Millisecond != 0 {
		return nil, fmt.Errorf("every %v from %v: the time must be whole milliseconds", tidy(interval), from)
	}
	e := s.(every)
	e.from = from.Milliseconds() - floorDiv(from.Milliseconds(), e.interval)*e.interval
	return e, nil
}

// At is the slot that contains t.
func (e every) At(t time.Time) Slot { return e.slot(t, 0) }

// Next is the slot after the one that contains t.
func (e every) Next(t time.Time) Slot { return e.slot(t, 1) }

// slot is the slot that comes n after the one that contains t.
func (e every) slot(t time.Time, n int64) Slot {
	if !known(t) {
		return Slot{}
	}
	first := anchor + e.from
	start := first + (floorDiv(t.UnixMilli()-first, e.interval)+n)*e.interval
	return slotOf(start, start+e.interval)
}

// String is "every ", the interval, and from when it is counted: a time of day or, later than the
// first day, an instant.
func (e every) String() string {
	text := "every " + tidy(time.Duration(e.interval)*time.Millisecond)
	switch at := time.UnixMilli(anchor + e.from).UTC(); {
	case e.from == 0:
		return text
	case e.from >= daySeconds*1000:
		return text + " from " + instant(at)
	case e.from%(minuteSeconds*1000) == 0:
		return text + " from " + at.Format("15:04")
	default:
		return text + " from " + at.Format("15:04:05.999")
	}
}

// parseEvery reads what follows "every" in the text of a schedule.
func parseEvery(words []string) (Schedule, error) {
	interval, err := time.ParseDuration(words[0])
	if err != nil {
		return nil, fmt.Errorf("every %q: not a duration such as 90s, 5m or 1h30m", words[0])
	}
	if len(words) == 1 {
		return Every(interval)
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(layout, words[2]); err == nil {
			return EveryFrom(interval, at.Sub(at.Truncate(24*time.Hour)))
		}
	}
	at, err := time.Parse(time.RFC3339, words[2])
	if err != nil || !known(at) {
		return nil, fmt.Errorf("from %q: not a time of day in UTC such as 00:30, or an instant such as 2026-01-07T06:00:00Z", words[2])
	}
	// The years that are known are more than a Duration can hold.
	length := max(interval.Milliseconds(), 1)
	since := at.UnixMilli() - anchor
	return EveryFrom(interval, time.Duration(since-floorDiv(since, length)*length)*time.Millisecond+time.Duration(at.Nanosecond()%int(time.Millisecond)))
}

// tidy is the duration as text without the units that are zero: 5m, not 5m0s.
func tidy(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// floorDiv is a/b rounded down, for b > 0. Go's own division rounds towards
// zero, which would make the slots around the anchor overlap.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
