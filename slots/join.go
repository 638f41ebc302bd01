package slots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// joined is a schedule whose boundaries are those of its parts, without those on some dates.
type joined struct {
	parts  []Schedule // intervals and cron schedules
	except dates
}

// Join makes a schedule whose boundaries are those of all the schedules together, such as two
// cron specs for one job. A slot lasts from one boundary to the next, of whichever schedule.
// The order of the schedules doesn't count. They are of [Every], [EveryFrom], [Cron] or Join itself,
// and no two of them may have boundaries that are less than [MinInterval] apart.
func Join(schedules ...Schedule) (Schedule, error) {
	var parts []Schedule
	for _, s := range schedules {
		of, err := partsOf(s)
		if err != nil {
			return nil, fmt.Errorf("join: %w", err)
		}
		parts = append(parts, of...)
	}
	slices.SortFunc(parts, func(a, b Schedule) int { return strings.Compare(a.String(), b.String()) })
	parts = slices.CompactFunc(parts, func(a, b Schedule) bool { return a.String() == b.String() })
	switch len(parts) {
	case 0:
		return nil, errors.New("join: no schedule is given")
	case 1:
		return parts[0], nil
	}
	for i, a := range parts {
		for _, b := range parts[:i] {
			if least := closest(a, b); least < MinInterval {
				return nil, fmt.Errorf("join: boundaries of %q and %q may be %v apart, at least %v are needed", b, a, least, MinInterval)
			}
		}
	}
	return bounded(&joined{parts: parts})
}

// partsOf are the parts of a schedule that has neither dates nor a shift.
func partsOf(s Schedule) ([]Schedule, error) {
	switch s := s.(type) {
	case every, *cronSchedule:
		return []Schedule{s}, nil
	case *joined:
		if len(s.except) == 0 {
			return s.parts, nil
		}
	case nil:
		return nil, errors.New("a schedule is nil")
	}
	return nil, fmt.Errorf("%.70q is no interval and no cron schedule; join those first, then leave out dates, then spread", s)
}

// bounded refuses a schedule whose text is too long for a record.
func bounded(s Schedule) (Schedule, error) {
	if n := len(s.String()); n > maxText {
		return nil, fmt.Errorf("schedule %.40q…: the text has %d bytes, at most %d are allowed", s, n, maxText)
	}
	return s, nil
}

// closest is the least distance of two boundaries of two schedules that aren't the same instant.
func closest(a, b Schedule) time.Duration {
	grid := func(s Schedule) every {
		if e, ok := s.(every); ok {
			return e
		}
		return every{interval: 1000} // Firings of cron are whole seconds.
	}
	x, y := grid(a), grid(b)
	common, rest := x.interval, y.interval
	for rest != 0 {
		common, rest = rest, common%rest
	}
	// Boundaries of the two are any multiple of common, and this, apart.
	apart := x.from - y.from - floorDiv(x.from-y.from, common)*common
	if apart > 0 {
		common = min(apart, common-apart)
	}
	return time.Duration(common) * time.Millisecond
}

// At is the slot that contains t.
func (j *joined) At(t time.Time) Slot {
	var start time.Time
	for _, part := range j.parts {
		last := j.last(part, t)
		if last.IsZero() {
			return Slot{}
		}
		if last.After(start) {
			start = last
		}
	}
	return slotBetween(start, j.next(t))
}

// Next is the slot after the one that contains t.
func (j *joined) Next(t time.Time) Slot {
	start := j.next(t)
	if start.IsZero() {
		return Slot{}
	}
	return slotBetween(start, j.next(start))
}

// slotBetween is the slot between two boundaries, zero if one of them is.
func slotBetween(start, end time.Time) Slot {
	if start.IsZero() || end.IsZero() {
		return Slot{}
	}
	return Slot{Start: start, End: end}
}

// next is the first boundary after t, zero if a part has none in the years that schedules know.
func (j *joined) next(t time.Time) (first time.Time) {
	for _, part := range j.parts {
		at := part.Next(t).Start
		for !at.IsZero() {
			_, until := j.except.around(part, at)
			if until.IsZero() {
				break
			}
			at = part.Next(until.Add(-1)).Start
		}
		if at.IsZero() {
			return at
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// last is the last boundary of a part at or before t, zero if it has none in those years.
func (j *joined) last(part Schedule, t time.Time) time.Time {
	at := part.At(t).Start
	for !at.IsZero() {
		from, until := j.except.around(part, at)
		if until.IsZero() {
			break
		}
		at = part.At(from.Add(-1)).Start
	}
	return at
}

// Location is the zone of all parts, and UTC if they have several.
func (j *joined) Location() *time.Location {
	zone := Location(j.parts[0])
	for _, part := range j.parts {
		if Location(part).String() != zone.String() {
			return time.UTC
		}
	}
	return zone
}

// String is the text of the parts with " + " between them and, if there are dates, " except " and these.
func (j *joined) String() string {
	texts := make([]string, len(j.parts))
	for i, part := range j.parts {
		texts[i] = part.String()
	}
	text := strings.Join(texts, " + ")
	if len(j.except) > 0 {
		text += " except " + j.except.String()
	}
	return text
}
