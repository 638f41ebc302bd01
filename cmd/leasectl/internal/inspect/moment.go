package inspect

import (
	"errors"
	"time"
)

// Moment is a time as a person names it: an instant, or a time of day, in UTC. The zero value is now.
type Moment struct {
	instant time.Time
	clock   time.Duration // since midnight
	daily   bool
}

// ParseMoment reads an instant as in RFC 3339, or a time of day such as 15:04 or 15:04:05.
func ParseMoment(s string) (Moment, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return Moment{instant: t.UTC()}, nil
	}
	for _, layout := range []string{"15:04", "15:04:05", "15:04Z", "15:04:05Z"} {
		if t, err := time.Parse(layout, s); err == nil {
			return Moment{clock: time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second, daily: true}, nil
		}
	}
	return Moment{}, errors.New("must be a time of day in UTC such as 02:00, or an instant such as 2026-03-02T02:00:00Z")
}

// Before is the moment as seen from a time: a time of day is the last one that was not after it.
func (m Moment) Before(now time.Time) time.Time {
	switch {
	case m.daily:
		const day = 24 * time.Hour
		at := now.UTC().Truncate(day).Add(m.clock)
		if at.After(now) {
			at = at.Add(-day)
		}
		return at
	case m.instant.IsZero():
		return now
	}
	return m.instant
}
