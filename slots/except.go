package slots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// dates are days without boundaries, in order and apart.
type dates []days

// days are successive days [first, after), counted from 1970-01-01.
type days struct{ first, after int64 }

// Except makes a schedule without the boundaries of some dates, such as holidays: the slot before them goes
// on until the next boundary. A date is written as 2026-12-25, and successive ones as 2026-12-24..2026-12-26. It
// is that of the local time at which the boundary is, in the zone of the cron spec, and in UTC for an interval.
//
// The schedule is one of [Every], [EveryFrom], [Cron], [Join] or Except. A slot must not become longer than
// [MaxInterval]. The error names all dates that can't be read.
func Except(s Schedule, dates ...string) (Schedule, error) {
	if len(dates) == 0 {
		return s, nil
	}
	j := &joined{}
	if of, ok := s.(*joined); ok {
		*j = *of
	} else {
		parts, err := partsOf(s)
		if err != nil {
			return nil, fmt.Errorf("except: %w", err)
		}
		j.parts = parts
	}
	all := slices.Clone(j.except)
	var errs []error
	for _, text := range dates {
		d, err := parseDays(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("except %q: %w", text, err))
		}
		all = append(all, d)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	j.except = all.merged()
	for _, d := range j.except {
		if length := j.longestAround(d); length > MaxInterval || d.after-d.first > int64(MaxInterval/(24*time.Hour)) {
			return nil, fmt.Errorf("except %s: a slot would last more than 366 days, because no boundary would be left in them", d)
		}
	}
	return bounded(j)
}

// parseDays reads a date, or the first and the last of several.
func parseDays(text string) (d days, err error) {
	first, last, several := strings.Cut(text, "..")
	if !several {
		last = first
	}
	from, err := time.Parse(time.DateOnly, first)
	to, toErr := time.Parse(time.DateOnly, last)
	switch {
	case err != nil || toErr != nil || !known(from) || !known(to):
		return d, errors.New("not a date such as 2026-12-25, or dates such as 2026-12-24..2026-12-26")
	case to.Before(from):
		return d, errors.New("the first date is after the last one")
	}
	return days{floorDiv(from.Unix(), daySeconds), floorDiv(to.Unix(), daySeconds) + 1}, nil
}

// merged are the same days in order, without gaps of no day.
func (ds dates) merged() (out dates) {
	slices.SortFunc(ds, func(a, b days) int { return int(a.first - b.first) })
	for _, d := range ds {
		if n := len(out) - 1; n >= 0 && d.first <= out[n].after {
			out[n].after = max(out[n].after, d.after)
		} else {
			out = append(out, d)
		}
	}
	return out
}

// longestAround is the longest slot that some days have made longer: it contains the first of them, or begins or
// ends near them where the clocks of parts differ.
func (j *joined) longestAround(d days) (longest time.Duration) {
	for _, day := range []int64{d.first - 1, d.first, d.first + 1, d.first + 2, d.after - 1, d.after} {
		longest = max(longest, j.At(time.Unix(day*daySeconds, 0)).Length())
	}
	return longest
}

// around are the instants [from, until) around a boundary of a part that are on these dates by the part's clock,
// up to the next change of its offset; zero if the boundary isn't on them.
func (ds dates) around(part Schedule, at time.Time) (from, until time.Time) {
	if len(ds) == 0 {
		return from, until
	}
	s := stretchAt(Location(part), at.Unix())
	day := floorDiv(at.Unix()+s.offset, daySeconds)
	for _, d := range ds {
		if d.first <= day && day < d.after {
			return time.Unix(max(s.start, d.first*daySeconds-s.offset), 0), time.Unix(min(s.end, d.after*daySeconds-s.offset), 0)
		}
	}
	return from, until
}

// String is the dates with commas between them.
func (ds dates) String() string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = d.String()
	}
	return strings.Join(texts, ",")
}

// String is the date, or the first and the last.
func (d days) String() string {
	date := func(day int64) string { return time.Unix(day*daySeconds, 0).UTC().Format(time.DateOnly) }
	if d.after == d.first+1 {
		return date(d.first)
	}
	return date(d.first) + ".." + date(d.after-1)
}
