package slots_test

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// oracle is a spec that is asked for each day and each minute: by the rules of cronie's crontab(5) and
// entry.c, or by those of Quartz and AWS. It shares no code with the package.
type oracle struct {
	five    []string
	fromOne bool // Sunday is 1, as in Quartz
	minutes [60]bool
	hours   [24]bool
	days    map[time.Time]bool // what is known of days
}

// oracleOf reads a spec of a program. It takes for granted that it is one.
func oracleOf(program, spec string) *oracle {
	o := &oracle{five: strings.Fields(spec), days: map[time.Time]bool{}}
	o.read(program, spec)
	for m := range o.minutes {
		o.minutes[m] = hasValue(o.five[0], m, 0, 59, nil)
	}
	for h := range o.hours {
		o.hours[h] = hasValue(o.five[1], h, 0, 23, nil)
	}
	return o
}

func (o *oracle) read(program, spec string) {
	words := strings.Fields(spec)
	switch {
	case program == "quartz" && len(words) > 5:
		o.five, o.fromOne = words[1:6], true
	case program == "aws":
		o.five, o.fromOne = strings.Fields(strings.TrimSuffix(strings.TrimPrefix(spec, "cron("), ")"))[:5], true
	case program == "spring":
		o.five = words[1:]
	}
	descriptors := map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
		"@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
	if five := descriptors[strings.ToLower(spec)]; five != "" {
		o.five = strings.Fields(five)
	}
}

// fires reports whether the spec fires when a clock shows a time.
func (o *oracle) fires(wall time.Time) bool {
	return wall.Second() == 0 && o.minutes[wall.Minute()] && o.hours[wall.Hour()] && o.day(wall)
}

// Next is the first minute after an instant at which the spec fires in UTC, up to ten years later.
func (o *oracle) Next(after time.Time) time.Time {
	minute := after.Truncate(time.Minute).Add(time.Minute)
	for end := after.AddDate(10, 0, 0); minute.Before(end); {
		if !o.day(minute) {
			minute = minute.Truncate(24 * time.Hour).Add(24 * time.Hour)
			continue
		}
		if o.fires(minute) {
			return minute
		}
		minute = minute.Add(time.Minute)
	}
	return time.Time{}
}

var (
	monthNames   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// day reports whether the spec fires on the day of an instant.
func (o *oracle) day(at time.Time) bool {
	date := at.Truncate(24 * time.Hour)
	on, known := o.days[date]
	if !known {
		on = o.date(date)
		o.days[date] = on
	}
	return on
}

func (o *oracle) date(at time.Time) bool {
	if !hasValue(o.five[3], int(at.Month()), 1, 12, monthNames) {
		return false
	}
	last := at.AddDate(0, 1, -at.Day()).Day()
	byDay, byWeekday := false, false
	for item := range strings.SplitSeq(strings.ToLower(o.five[2]), ",") {
		byDay = byDay || o.monthDay(item, at, last)
	}
	for item := range strings.SplitSeq(strings.ToLower(o.five[4]), ",") {
		byWeekday = byWeekday || o.weekday(item, at, last)
	}
	if strings.ContainsAny(o.five[2][:1]+o.five[4][:1], "*?") { // DOM_STAR or DOW_STAR
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

func (o *oracle) monthDay(item string, at time.Time, last int) bool {
	working := func(day int) bool {
		if day > last {
			return false
		}
		// The nearest day from Monday to Friday of the same month.
		best := 0
		for d := 1; d <= last; d++ {
			weekday := at.AddDate(0, 0, d-at.Day()).Weekday()
			if weekday != time.Saturday && weekday != time.Sunday && (best == 0 || max(d-day, day-d) < max(best-day, day-best)) {
				best = d
			}
		}
		return at.Day() == best
	}
	number, _ := strconv.Atoi(strings.Trim(item, "lw-"))
	switch {
	case item == "lw":
		return working(last)
	case strings.HasSuffix(item, "w"):
		return working(number)
	case strings.HasPrefix(item, "l"):
		return at.Day() == last-number
	}
	return hasValue(item, at.Day(), 1, 31, nil)
}

func (o *oracle) weekday(item string, at time.Time, last int) bool {
	low, weekday := 0, int(at.Weekday())
	if o.fromOne {
		low, weekday = 1, weekday+1
	}
	has := func(item string) bool {
		if !o.fromOne && weekday == 0 && (item == "7" || strings.Contains(item, "-")) && hasValue(strings.ReplaceAll(item, "-sun", "-7"), 7, 0, 7, weekdayNames) {
			return true // the 7 for Sunday
		}
		return hasValue(item, weekday, low, low+6, weekdayNames)
	}
	name, week, isNth := strings.Cut(item, "#")
	name, isLast := strings.CutSuffix(name, "l")
	switch {
	case isNth:
		return has(name) && strconv.Itoa((at.Day()+6)/7) == week
	case isLast && name == "":
		return weekday == low+6
	case isLast:
		return has(name) && at.Day()+7 > last
	}
	return has(item)
}

// hasValue reports whether a field of cron has a value, by counting.
func hasValue(field string, value, low, high int, names []string) bool {
	number := func(text string) int {
		if i := slices.Index(names, text); i >= 0 {
			return low + i
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return -1
		}
		return n
	}
	for item := range strings.SplitSeq(strings.ToLower(field), ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		from, to, ranged := strings.Cut(span, "-")
		first, last, step := number(from), number(from), 1
		switch {
		case span == "*" || span == "?" || span == "":
			first, last = low, high
		case ranged:
			last = number(to)
		case stepped:
			last = high
		}
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		if last < first { // Quartz goes on from the start.
			last += high - low + 1
		}
		for v := first; v <= last && first >= 0 && item != ""; v += step {
			if v == value || v == value+high-low+1 {
				return true
			}
		}
	}
	return false
}
