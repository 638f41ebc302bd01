package slots

import (
	"fmt"
	"strconv"
	"strings"
)

// monthDay is an item of a day field that names another day in each month.
type monthDay struct {
	kind monthDayKind
	// n counts days before the last one, or weeks of the month; or it is the day whose nearest
	// working day is meant, 0 for the last one.
	n, weekday int64
}

type monthDayKind int

const (
	lastDay     monthDayKind = iota // L and L-3
	workingDay                      // 15W and LW
	nthWeekday                      // MON#2
	lastWeekday                     // FRIL
)

// splitMonthDays takes the items out of a day field that name another day in each month. What is
// left may be an empty list, which names no day.
func splitMonthDays(field int, word string) (rest string, days []monthDay, err error) {
	if field != dayOfMonth && field != dayOfWeek || !strings.ContainsAny(word, "LlWw#") {
		return word, nil, nil
	}
	var items []string
	for item := range strings.SplitSeq(word, ",") {
		day, found, err := monthDayOf(field, strings.ToUpper(item))
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("field %q: %w", item, err)
		case found:
			days = append(days, day)
		default:
			items = append(items, item)
		}
	}
	return strings.Join(items, ",") + ",", days, nil
}

// monthDayOf reads an item in capitals, false if it is an ordinary one.
func monthDayOf(field int, item string) (day monthDay, found bool, err error) {
	if field == dayOfWeek {
		return weekdayOfMonth(item)
	}
	number, isWorking := strings.CutSuffix(item, "W")
	before, isBefore := strings.CutPrefix(item, "L-")
	switch {
	case item == "L":
		return monthDay{kind: lastDay}, true, nil
	case item == "LW":
		return monthDay{kind: workingDay}, true, nil
	case isBefore:
		n, err := strconv.Atoi(before)
		if err != nil || n < 1 || n > 27 {
			return day, false, fmt.Errorf("an L- is followed by how many days before the last one, 1 to 27; such as L-3")
		}
		return monthDay{kind: lastDay, n: int64(n)}, true, nil
	case isWorking:
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 31 {
			return day, false, fmt.Errorf("a W follows one day of the month, or L; such as 15W or LW")
		}
		return monthDay{kind: workingDay, n: int64(n)}, true, nil
	case strings.ContainsAny(item, "LW"):
		return day, false, fmt.Errorf("neither L nor W is part of a range; write each day, such as 15W or L-3")
	}
	return day, false, nil
}

// weekdayOfMonth reads FRIL and MON#2.
func weekdayOfMonth(item string) (day monthDay, found bool, err error) {
	name, week, isNth := strings.Cut(item, "#")
	if !isNth {
		last := false
		if name, last = strings.CutSuffix(item, "L"); !last {
			return day, false, nil
		}
	}
	weekday, ok := fiveFields[dayOfWeek].value(name)
	n, err := strconv.Atoi(week)
	switch {
	case item == "L":
		return day, false, fmt.Errorf("write SAT for each Saturday, or a day and L, such as SATL, for the last one of the month")
	case !ok:
		return day, false, fmt.Errorf("what L and # follow is one day of the week, such as FRIL or MON#2")
	case !isNth:
		return monthDay{kind: lastWeekday, weekday: int64(weekday % 7)}, true, nil
	case err != nil || n < 1 || n > 5:
		return day, false, fmt.Errorf("# is followed by a week of the month, 1 to 5; write %s for the last one", name+"L")
	}
	return monthDay{kind: nthWeekday, n: int64(n), weekday: int64(weekday % 7)}, true, nil
}

// in is the set of the day in a month of so many days that begins on a weekday (0 is Sunday):
// bit 1 for the first, none if the month has no such day.
func (d monthDay) in(begins, days int64) uint64 {
	var day int64
	switch d.kind {
	case lastDay:
		day = days - d.n
	case nthWeekday:
		day = 1 + (d.weekday-begins+7)%7 + (d.n-1)*7
	case lastWeekday:
		day = days - (begins+days-1-d.weekday+7)%7
	case workingDay:
		day = nearestWorkingDay(d.n, begins, days)
	}
	if day < 1 || day > days {
		return 0
	}
	return 1 << day
}

// nearestWorkingDay is the day from Monday to Friday of the month that is nearest to a day, or the
// last one of the month for 0; 0 if the month has no such day.
func nearestWorkingDay(day, begins, days int64) int64 {
	last := day == 0
	if last {
		day = days
	}
	if day > days {
		return 0
	}
	switch weekday := (begins + day - 1) % 7; {
	case weekday == 6 && day == 1:
		return day + 2
	case weekday == 6:
		return day - 1
	case weekday == 0 && day == days:
		return day - 2
	case weekday == 0:
		return day + 1
	}
	return day
}
