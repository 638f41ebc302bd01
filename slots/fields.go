package slots

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// Local ("wall") times are counted in seconds, as if the local clock had shown
// UTC since 1970: the zone and its changes are put in only afterwards. That keeps
// everything here free of daylight saving time.
const (
	minuteSeconds = 60
	dayMinutes    = 24 * 60
	daySeconds    = dayMinutes * minuteSeconds
)

// starBit is set by robfig/cron in a field that was given as a star.
const starBit = 1 << 63

// calendarYears and calendarDays are the length of the Gregorian calendar's
// cycle. It is a whole number of weeks.
const (
	calendarYears = 400
	calendarDays  = 146097
)

// fields are the five fields of a cron spec as sets of bits, bit n for value n.
type fields struct {
	minute, hour, month, weekday uint64
	day                          uint64
	// monthDays and weekdays are what the day fields name beyond that: another day in each month.
	monthDays, weekdays []monthDay
	// bothDays says that a day must match both day and weekday, rather than either:
	// at least one of them begins with a star, as in */2. That is how cronie and Vixie cron decide.
	bothDays bool
}

// fieldsOf takes the sets of bits that robfig/cron's parser made.
func fieldsOf(s *cron.SpecSchedule) fields {
	return fields{
		minute:   s.Minute &^ starBit,
		hour:     s.Hour &^ starBit,
		month:    s.Month &^ starBit,
		day:      s.Dom &^ starBit,
		weekday:  s.Dow &^ starBit,
		bothDays: (s.Dom|s.Dow)&starBit != 0,
	}
}

// everyHour reports whether the hour field names all hours.
func (f fields) everyHour() bool { return f.hour == 1<<24-1 }

// next is the first matching wall time at or after w. The fields must match
// some day (see longestGap).
func (f fields) next(w int64) int64 {
	minutes := floorDiv(w+minuteSeconds-1, minuteSeconds)
	today := floorDiv(minutes, dayMinutes)
	day := f.dayFrom(today)
	if day == today {
		if minute, ok := f.minuteFrom(minutes - today*dayMinutes); ok {
			return day*daySeconds + minute*minuteSeconds
		}
		day = f.dayFrom(today + 1)
	}
	minute, _ := f.minuteFrom(0)
	return day*daySeconds + minute*minuteSeconds
}

// last is the last matching wall time at or before w. The fields must match
// some day (see longestGap).
func (f fields) last(w int64) int64 {
	minutes := floorDiv(w, minuteSeconds)
	today := floorDiv(minutes, dayMinutes)
	day := f.dayUpTo(today)
	if day == today {
		if minute, ok := f.minuteUpTo(minutes - today*dayMinutes); ok {
			return day*daySeconds + minute*minuteSeconds
		}
		day = f.dayUpTo(today - 1)
	}
	minute, _ := f.minuteUpTo(dayMinutes - 1)
	return day*daySeconds + minute*minuteSeconds
}

// minuteFrom is the first matching minute of the day at or after m.
func (f fields) minuteFrom(m int64) (int64, bool) {
	hour := m / 60
	if left := f.minute &^ (1<<(m%60) - 1); left != 0 && f.hour&(1<<hour) != 0 {
		return hour*60 + lowest(left), true
	}
	left := f.hour &^ (2<<hour - 1)
	return lowest(left)*60 + lowest(f.minute), left != 0
}

// minuteUpTo is the last matching minute of the day at or before m.
func (f fields) minuteUpTo(m int64) (int64, bool) {
	hour := m / 60
	if left := f.minute & (2<<(m%60) - 1); left != 0 && f.hour&(1<<hour) != 0 {
		return hour*60 + highest(left), true
	}
	left := f.hour & (1<<hour - 1)
	return highest(left)*60 + highest(f.minute), left != 0
}

// dayFrom is the first matching day at or after day, in days since 1970-01-01.
func (f fields) dayFrom(day int64) int64 {
	year, month, d := dateOf(day)
	first, matching := f.daysOf(year, month)
	matching &^= 1<<d - 1
	for matching == 0 {
		year, month = shifted(year, month, 1)
		first, matching = f.daysOf(year, month)
	}
	return first + lowest(matching) - 1
}

// dayUpTo is the last matching day at or before day, in days since 1970-01-01.
func (f fields) dayUpTo(day int64) int64 {
	year, month, d := dateOf(day)
	first, matching := f.daysOf(year, month)
	matching &= 2<<d - 1
	for matching == 0 {
		year, month = shifted(year, month, -1)
		first, matching = f.daysOf(year, month)
	}
	return first + highest(matching) - 1
}

// daysOf is the set of the days of a month that match, bit 1 for the first, and
// what the first is in days since 1970-01-01.
func (f fields) daysOf(year int, month time.Month) (first int64, matching uint64) {
	if f.month&(1<<month) == 0 {
		return 0, 0
	}
	first = floorDiv(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix(), daySeconds)
	after := floorDiv(time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).Unix(), daySeconds)

	// 1970-01-01 was a Thursday.
	begins := first + 4 - floorDiv(first+4, 7)*7
	var weekdays uint64
	for left := f.weekday; left != 0; left &= left - 1 {
		const weekly = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
		weekdays |= weekly << (1 + (lowest(left)-begins+7)%7)
	}
	days := f.day
	for _, d := range f.monthDays {
		days |= d.in(begins, after-first)
	}
	for _, d := range f.weekdays {
		weekdays |= d.in(begins, after-first)
	}
	matching = days | weekdays
	if f.bothDays {
		matching = days & weekdays
	}
	return first, matching & (2<<(after-first) - 2)
}

// longestGap is the largest distance between successive matching days in the
// whole Gregorian calendar, in days; false if the fields never match.
func (f fields) longestGap() (int64, bool) {
	if f.minute == 0 || f.hour == 0 {
		return 0, false
	}
	// Years that begin on the same weekday and are as long match on the same days.
	var kinds [7][2]*matches
	var longest, firstEver, last int64
	found := false
	begins, next := int64(0), yearBegins(2000)
	for year := 2000; year < 2000+calendarYears; year++ {
		begins, next = next, yearBegins(year+1)
		kind := &kinds[begins%7][next-begins-365]
		if *kind == nil {
			*kind = f.matchesOf(year)
		}
		m := *kind
		if m.none {
			continue
		}
		if found {
			longest = max(longest, begins+m.first-last)
		} else {
			found, firstEver = true, begins+m.first
		}
		longest, last = max(longest, m.gap), begins+m.last
	}
	return max(longest, firstEver+calendarDays-last), found
}

// matches is where a year has matching days, in days since its first, and the
// largest distance between successive ones.
type matches struct {
	first, last, gap int64
	none             bool
}

func (f fields) matchesOf(year int) *matches {
	m := &matches{none: true}
	for month := time.January; month <= time.December; month++ {
		first, matching := f.daysOf(year, month)
		first -= yearBegins(year)
		for ; matching != 0; matching &= matching - 1 {
			day := first + lowest(matching) - 1
			if m.none {
				m.none, m.first = false, day
			} else {
				m.gap = max(m.gap, day-m.last)
			}
			m.last = day
		}
	}
	return m
}

// yearBegins is the first day of a year, in days since 1970-01-01.
func yearBegins(year int) int64 {
	return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
}

// dateOf is the date of a day that is given in days since 1970-01-01.
func dateOf(day int64) (int, time.Month, int) {
	return time.Unix(day*daySeconds, 0).UTC().Date()
}

// shifted is the month before (by = -1) or after (by = 1).
func shifted(year int, month time.Month, by int) (int, time.Month) {
	switch m := month + time.Month(by); m {
	case time.January - 1:
		return year - 1, time.December
	case time.December + 1:
		return year + 1, time.January
	default:
		return year, m
	}
}

// lowest is the number of the lowest bit that is set.
func lowest(set uint64) int64 { return int64(bits.TrailingZeros64(set)) }

// highest is the number of the highest bit that is set.
func highest(set uint64) int64 { return int64(bits.Len64(set)) - 1 }
