package slots

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones must load on machines without a tz database
)

// Stand-ins for the beginning and the end of time, in Unix seconds. They leave
// room to add an offset.
const (
	beginning = -1 << 60
	ending    = 1 << 60
)

// overlap is more than any two offsets of one zone differ, in seconds. Local
// times that were shown longer ago than that can't be shown again.
const overlap = 2 * daySeconds

// stretch is a time during which the offset of a zone is constant, in Unix
// seconds: [start, end).
type stretch struct{ start, end, offset int64 }

// stretchAt is a stretch that contains u. It may be shorter than it could be,
// that is, have a neighbour of the same offset.
func stretchAt(loc *time.Location, u int64) stretch {
	t := time.Unix(u, 0).In(loc)
	_, offset := t.Zone()
	s := stretch{start: beginning, end: ending, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		s.start = min(start.Unix(), u)
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= u {
		// In the years that a zone file gives by rule, package time takes a year
		// to have 365 days, so on the last day of a leap year ZoneBounds ends in the past.
		s.end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
		if _, o := time.Unix(s.end-1, 0).In(loc).Zone(); o != offset {
			s.end = u + 1
		}
	}
	return s
}

// shownBefore is the first wall time that the local clock didn't reach before the
// stretch began. It is less than the stretch's own first wall time if the
// clock was set forward, and more if it was set back.
func (s stretch) shownBefore(loc *time.Location) int64 {
	if s.start == beginning {
		return s.start + s.offset
	}
	shown := int64(beginning)
	for end := s.start; end > s.start-overlap; {
		before := stretchAt(loc, end-1)
		shown = max(shown, end+before.offset)
		end = before.start
	}
	return shown
}

// loadZone finds a time zone by its name in the tz database. An empty name is
// UTC.
func loadZone(name string) (*time.Location, error) {
	lower := strings.ToLower(name)
	switch {
	case name == "" || name == "UTC":
		return time.UTC, nil
	case lower == "local" || lower == "localtime" || lower == "posixrules":
		return nil, fmt.Errorf("zone %q: differs from machine to machine; name the zone, such as Europe/Berlin", name)
	case strings.HasPrefix(lower, "right/"):
		return nil, fmt.Errorf("zone %q: counts leap seconds; use %q", name, name[len("right/"):])
	case strings.HasPrefix(lower, "posix/"):
		return nil, fmt.Errorf("zone %q: not on every machine; use %q", name, name[len("posix/"):])
	case strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("_+-/", r) }):
		return nil, fmt.Errorf("zone %q: not a name of the tz database, such as Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		// The cause may contain paths of this machine, which don't help.
		return nil, fmt.Errorf("zone %q: %w", name, errUnknownZone)
	}
	return loc, nil
}

// errUnknownZone is why a zone can't be loaded.
var errUnknownZone = errors.New("unknown to the tz database (names look like Europe/Berlin)")

// isAlphanumeric reports whether r is an ASCII letter or digit.
func isAlphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
