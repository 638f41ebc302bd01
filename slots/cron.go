package slots

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// maxText bounds the text of a schedule, in bytes.
	maxText = 512
	// dateLine is a gap in local time that is no daylight saving time, in seconds:
	// the zone moved across the date line.
	dateLine = daySeconds / 2
	// maxSlot is MaxInterval in seconds.
	maxSlot = int64(MaxInterval / time.Second)
)

// cronSchedule is a schedule whose boundaries are the firings of a cron spec.
type cronSchedule struct {
	fields
	spec string
	zone string // empty for UTC
	loc  *time.Location
}

// Cron makes a schedule whose slots last from one firing of a cron spec to the next.
// The spec has five fields (minute, hour, day of month, month, day of week), or is
// @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually. The zone is a
// name of the tz database such as Europe/Berlin; empty means UTC. The package
// documentation says what fields may have, and what happens when the clocks change.
//
// Cron refuses specs with seconds or years, @every and @reboot, a zone as a prefix of the spec,
// a zone that differs from machine to machine ("Local"), specs that never fire, and
// specs whose slots could be longer than [MaxInterval]. The error names all faults of
// the spec and the zone, and what to write instead of an expression that is another program's.
func Cron(spec, zone string) (Schedule, error) {
	if n := len("cron ") + len(spec) + len(" ") + len(zone); n > maxText {
		return nil, fmt.Errorf("cron: the schedule's text has %d bytes, at most %d are allowed", n, maxText)
	}
	spec = strings.Join(strings.Fields(spec), " ")
	f, specErr := parseFields(spec)
	loc, zoneErr := loadZone(zone)
	if err := errors.Join(specErr, zoneErr); err != nil {
		return nil, fmt.Errorf("cron %q: %w", spec, err)
	}
	if loc == time.UTC {
		zone = ""
	}
	return &cronSchedule{fields: f, spec: spec, zone: zone, loc: loc}, nil
}

// parser reads five fields or a descriptor.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseFields reads a spec and checks that its slots are of a length that is
// allowed.
func parseFields(spec string) (fields, error) {
	if err := foreign(spec); err != nil {
		return fields{}, err
	}
	f, err := readFields(strings.Fields(spec))
	if err != nil {
		return fields{}, err
	}
	gap, fires := f.longestGap()
	switch {
	case !fires:
		return fields{}, errors.New("the spec never fires; no day has that date")
	case gap*daySeconds > maxSlot:
		return fields{}, fmt.Errorf("slots would be up to %d days long, at most 366 are allowed; choose a date that every year has", gap)
	}
	return f, nil
}

// readFields reads the five words of a spec, or its descriptor.
func readFields(words []string) (fields, error) {
	var monthDays [5][]monthDay
	parts := make([]string, len(words))
	for i, word := range words {
		// robfig/cron takes *-anything for a star.
		if strings.Contains(word, "*-") || strings.Contains(word, "?-") {
			return fields{}, fmt.Errorf("field %q: a range goes from a number to a number", word)
		}
		if strings.ContainsFunc(word, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("*?,-/@#", r) }) {
			return fields{}, fmt.Errorf("field %q: only letters, digits and *?,-/# may occur", word)
		}
		if len(words) != len(fiveFields) {
			parts[i] = strings.ToLower(word) // a descriptor
			continue
		}
		rest, days, err := splitMonthDays(i, word)
		if err == nil {
			parts[i], err = plain(i, rest, words)
		}
		if err != nil {
			return fields{}, err
		}
		monthDays[i] = days
	}
	parsed, err := parser.Parse(strings.Join(parts, " "))
	if err != nil && len(words) != len(fiveFields) {
		return fields{}, fmt.Errorf("%w; use @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually", err)
	}
	if err != nil {
		return fields{}, err
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fields{}, fmt.Errorf("not a spec of fields but %T", parsed)
	}
	f := fieldsOf(s)
	if len(words) == len(fiveFields) {
		f.monthDays, f.weekdays = monthDays[dayOfMonth], monthDays[dayOfWeek]
		f.bothDays = strings.ContainsAny(words[dayOfMonth][:1]+words[dayOfWeek][:1], "*?")
	}
	return f, nil
}

// At is the slot that contains t.
func (c *cronSchedule) At(t time.Time) Slot {
	if !known(t) {
		return Slot{}
	}
	start, end := c.around(t.Unix())
	return slotOf(start*1000, end*1000)
}

// Next is the slot after the one that contains t.
func (c *cronSchedule) Next(t time.Time) Slot {
	if !known(t) {
		return Slot{}
	}
	_, start := c.around(t.Unix())
	_, end := c.around(start)
	return slotOf(start*1000, end*1000)
}

// String is "cron ", the spec, and the zone if it isn't UTC.
func (c *cronSchedule) String() string {
	if c.zone == "" {
		return "cron " + c.spec
	}
	return "cron " + c.spec + " " + c.zone
}

// around is the slot that contains second u, in Unix seconds. Boundaries are
// whole seconds, so all of second u is in it.
func (c *cronSchedule) around(u int64) (start, end int64) {
	fired := c.lastFiring(u)
	start = fired + (u-fired)/maxSlot*maxSlot
	return start, min(start+maxSlot, c.nextFiring(u))
}

// nextFiring is the first firing after u. It ends, since the spec matches some
// wall time of any 366 days, and the last stretch of a zone has no end.
func (c *cronSchedule) nextFiring(u int64) int64 {
	for from := u + 1; ; {
		s := c.within(from)
		if from == s.start && s.makesUp {
			return from
		}
		if w := c.next(max(from+s.offset, s.fresh)); w < s.end+s.offset {
			return w - s.offset
		}
		from = s.end
	}
}

// lastFiring is the last firing at or before u. It ends as nextFiring does.
func (c *cronSchedule) lastFiring(u int64) int64 {
	for {
		s := c.within(u)
		if w := c.last(u + s.offset); w >= s.fresh {
			return w - s.offset
		}
		if s.makesUp {
			return s.start
		}
		u = s.start - 1
	}
}

// firings says what fires in a stretch: every matching wall time from fresh on,
// and its start if it makes up for what was skipped before it.
type firings struct {
	stretch
	fresh   int64
	makesUp bool
}

// within applies the rules for changes of the clock to the stretch around u.
func (c *cronSchedule) within(u int64) firings {
	s := firings{stretch: stretchAt(c.loc, u)}
	first := s.start + s.offset
	shown := s.shownBefore(c.loc)
	s.fresh = max(first, shown)
	if c.everyHour() {
		s.fresh = first
	}
	if skipped := first - shown; skipped >= dateLine || skipped > 0 && !c.everyHour() {
		s.makesUp = c.next(shown) < first
	}
	return s
}
