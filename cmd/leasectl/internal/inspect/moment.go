package inspect

import (
	"errors"
	"strings"
	"time"
)

// Moment is a time as a person names it: an instant, or a time of day, in the zone of the schedule or in UTC. The zero value is now.
type Moment struct {
	at    time.Time
	daily bool // at is on any day
	utc   bool // whatever the zone
}

// ParseMoment reads an instant as in RFC 3339, or a time of day such as 15:04 or 15:04:05, with Z for UTC.
func ParseMoment(s string) (Moment, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return Moment{at: t.UTC()}, nil
	}
	for _, layout := range []string{"15:04", "15:04:05", "15:04Z", "15:04:05Z"} {
		if t, err := time.Parse(layout, s); err == nil {
			return Moment{t, true, strings.HasSuffix(layout, "Z")}, nil
		}
	}
	return Moment{}, errors.New("must be a time of day in the schedule's zone such as 02:00, one in UTC such as 02:00Z, or an instant such as 2026-03-02T02:00:00Z")
}

// InUTC is the moment whatever the zone of the schedule.
func (m Moment) InUTC() Moment { return Moment{m.at, m.daily, m.daily} }

// Before is the moment as seen from a time: a time of day is the last one that was not after it. Where clocks are put forward it may
// be missing on a day, and where they are put back it comes twice.
func (m Moment) Before(now time.Time, zone *time.Location) (found time.Time) {
	switch {
	case m == Moment{}:
		return now
	case !m.daily:
		return m.at
	case m.utc:
		zone = time.UTC
	}
	year, month, day := now.In(zone).Date()
	for back := 0; found.IsZero() && back < 4; back++ { // A zone may skip a whole day, too.
		wall := time.Date(year, month, day-back, m.at.Hour(), m.at.Minute(), m.at.Second(), 0, time.UTC)
		for _, near := range []int{-1, 1} {
			_, offset := wall.AddDate(0, 0, near).In(zone).Zone()
			at := wall.Add(-time.Duration(offset) * time.Second)
			if shown := at.In(zone); shown.Format(time.TimeOnly) == wall.Format(time.TimeOnly) && !at.After(now) && at.After(found) {
				found = at
			}
		}
	}
	return found
}
