package convert

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// calendars are the words for calendar events.
var calendars = map[string]string{
	"minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *",
	"quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *", "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *",
}

// The parts of a calendar event: a date such as *-*-01, of which ~ counts from the end of the month, a time such as 02:30:00,
// and what stands in their lists.
var (
	datePart  = regexp.MustCompile(`^(?:\*-)?([^-~]+)([-~])([^-~]+)$`)
	clockPart = regexp.MustCompile(`^([^:]+):([^:]+)(?::0+)?$`)
	rangePart = regexp.MustCompile(`^([0-9]+)(?:\.\.([0-9]+))?(?:/([0-9]+))?$`)
)

// cronOf is the cron spec of a calendar event of systemd, and its zone, empty if it names none.
func cronOf(calendar string) (spec, zone string, err error) {
	words := strings.Fields(calendar)
	if n := len(words) - 1; n > 0 {
		if _, err := time.LoadLocation(words[n]); err == nil && words[n] != "Local" {
			zone, words = words[n], words[:n]
		}
	}
	if spec = calendars[strings.ToLower(strings.Join(words, " "))]; spec != "" {
		return spec, zone, nil
	}
	days, date, clock := "*", "*-*-*", "00:00:00"
	for _, w := range words {
		switch {
		case strings.Contains(w, ":"):
			clock = w
		case strings.ContainsAny(w, "-~"):
			date = w
		default:
			days = w
		}
	}
	week, badWeek := weekdays(days)
	day, month, badDate := dateFields(date)
	minute, hour, badClock := clockFields(clock)
	if err = cmp.Or(badWeek, badDate, badClock); err == nil && week != "*" && day != "*" {
		err = errors.New("cron takes a day of the week or of the month, and not both")
	}
	return strings.Join([]string{minute, hour, day, month, week}, " "), zone, err
}

// dateFields are the fields of cron for a date.
func dateFields(date string) (day, month string, err error) {
	m := datePart.FindStringSubmatch(date)
	if m == nil {
		return "", "", errors.New("cron has no years")
	}
	month, badMonth := numbers(m[1], 1, 12)
	if m[2] == "-" {
		day, err = numbers(m[3], 1, 31)
	} else if n, _ := strconv.Atoi(m[3]); n < 1 || n > 28 {
		err = errors.New("cron counts one day from the end of a month")
	} else {
		day = strings.TrimSuffix("L-"+strconv.Itoa(n-1), "-0")
	}
	return day, month, cmp.Or(badMonth, err)
}

// clockFields are the fields of cron for a time.
func clockFields(clock string) (minute, hour string, err error) {
	m := clockPart.FindStringSubmatch(clock)
	if m == nil {
		return "", "", errors.New("cron has no seconds")
	}
	hour, badHour := numbers(m[1], 0, 23)
	minute, badMinute := numbers(m[2], 0, 59)
	return minute, hour, cmp.Or(badHour, badMinute)
}

// numbers is a field of cron for a list of numbers, ranges a..b and steps a/n.
func numbers(list string, least, most int) (string, error) {
	if list == "*" {
		return list, nil
	}
	items := strings.Split(list, ",")
	for i, item := range items {
		a, b, n := -1, -1, 1
		if m := rangePart.FindStringSubmatch(item); m != nil {
			a, _ = strconv.Atoi(m[1]) // What is no number here is larger than any.
			if b = a; m[3] != "" {
				b = most
				n, _ = strconv.Atoi(m[3])
			}
			if m[2] != "" {
				b, _ = strconv.Atoi(m[2])
			}
		}
		switch {
		case a < least || b > most || b < a || n < 1:
			return "", fmt.Errorf("%q is no number from %d to %d, no range and no step", item, least, most)
		case n > b-a:
			items[i] = strconv.Itoa(a)
		case n == 1:
			items[i] = fmt.Sprintf("%d-%d", a, b)
		case a == 0 && b == most:
			items[i] = fmt.Sprintf("*/%d", n)
		default:
			items[i] = fmt.Sprintf("%d-%d/%d", a, b, n)
		}
	}
	return strings.Join(items, ","), nil
}

// weekdays is the field of cron for a list of days and ranges of days.
func weekdays(list string) (string, error) {
	if list == "*" {
		return list, nil
	}
	var on [7]bool
	for item := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(item, "..")
		a, b := weekday(first), weekday(last)
		if !ranged {
			b = a
		}
		if a < 0 || b < 0 {
			return "", fmt.Errorf("%q is no day of the week", item)
		}
		for ; a != b; a = (a + 1) % 7 {
			on[a] = true
		}
		on[b] = true
	}
	var days []string
	for i := range on {
		if on[i] {
			days = append(days, strconv.Itoa(i))
		}
	}
	return strings.Replace(strings.Join(days, ","), "1,2,3,4,5", "1-5", 1), nil
}

// weekday is the number of a day by its name or the first three letters of it, -1 if there is none.
func weekday(name string) int {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if full := day.String(); strings.EqualFold(name, full) || strings.EqualFold(name, full[:3]) {
			return int(day)
		}
	}
	return -1
}
