package slots

import (
	"fmt"
	"strings"
	"time"
)

// anchor is Monday 1970-01-05T00:00:00Z in Unix milliseconds, where the grid of
// every interval has a boundary.
const anchor = 4 * 24 * 60 * 60 * 1000

// every is a schedule of slots of equal length, in milliseconds.
type every struct{ interval int64 }

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
	return every{interval.Milliseconds()}, nil
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
	start := anchor + (floorDiv(t.UnixMilli()-anchor, e.interval)+n)*e.interval
	return slotOf(start, start+e.interval)
}

// String is "every " and the interval.
func (e every) String() string {
	return "every " + tidy(time.Duration(e.interval)*time.Millisecond)
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
