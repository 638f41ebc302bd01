package slots

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The places of the fields.
const (
	minuteField = iota
	hourField
	dayOfMonth
	monthField
	dayOfWeek
)

// field is what a place in a spec takes.
type field struct {
	unit      string
	low, high int
	size      int    // how many values there are
	names     string // of three letters each, for low and those after it
}

var fiveFields = [5]field{
	{"minutes", 0, 59, 60, ""},
	{"hours", 0, 23, 24, ""},
	{"days", 1, 31, 31, ""},
	{"months", 1, 12, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
	{"weekdays", 0, 7, 7, "SUNMONTUEWEDTHUFRISAT"}, // 0 and 7 are Sunday
}

// value reads a number or a name.
func (f field) value(text string) (int, bool) {
	if at := strings.Index(f.names, strings.ToUpper(text)); len(text) == 3 && at >= 0 && at%3 == 0 {
		return f.low + at/3, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && f.low <= n && n <= f.high
}

// plain is a field as robfig/cron's parser takes it, which knows no day 7 of the week and takes
// steps of any length.
func plain(place int, word string, words []string) (string, error) {
	items := strings.Split(word, ",")
	for i, item := range items {
		plainItem, err := fiveFields[place].plain(item)
		if err == nil && place != dayOfMonth && place != dayOfWeek && item == "?" {
			err = fmt.Errorf("only a day field may be ?; write *")
		}
		if step, ok := fiveFields[place].longStep(item); ok {
			err = tooLong(place, step, item, words)
		}
		if err != nil {
			return "", fmt.Errorf("field %q: %w", item, err)
		}
		items[i] = plainItem
	}
	return strings.Join(items, ","), nil
}

// plain is an item of the field without the 7 for Sunday. An item that no field has stays for the
// parser to refuse.
func (f field) plain(item string) (string, error) {
	span, stepText, stepped := strings.Cut(item, "/")
	from, to, ranged := strings.Cut(span, "-")
	if from == "?" && item != "?" {
		return "", fmt.Errorf("? stands alone; write *%s", item[1:])
	}
	first, ok := f.value(from)
	last, lastOK := first, ok
	if ranged {
		last, lastOK = f.value(to)
	}
	if !ok || !lastOK || stepped && !ranged {
		return item, f.unread(item, from, to, ranged)
	}
	step, err := strconv.Atoi(stepText)
	if stepped && (err != nil || step < 1) {
		return item, nil
	}
	return f.span(item, first, last, step)
}

// span is an item from a value to a value, as the parser takes it.
func (f field) span(item string, first, last, step int) (string, error) {
	if f.size == 7 && last == 0 && first > 0 {
		last = 7
	}
	wraps := last < first
	if wraps {
		last += f.size
	}
	var values []string
	for v := first; v <= last; v += max(step, 1) {
		values = append(values, strconv.Itoa(f.low+(v-f.low)%f.size))
	}
	switch list := strings.Join(values, ","); {
	case wraps && step < 2:
		return "", fmt.Errorf("a range goes up; write %d-%d,%d-%d", first, f.low+f.size-1, f.low, last-f.size)
	case wraps:
		return "", fmt.Errorf("a range goes up; write %s", list)
	case last == 7 && f.size == 7:
		return list, nil
	}
	return item, nil
}

// unread refuses an item whose ends are no values, unless the parser does so.
func (f field) unread(item, from, to string, ranged bool) error {
	ends := []string{from}
	if ranged {
		ends = append(ends, to)
	}
	for _, end := range ends {
		switch n, err := strconv.Atoi(end); {
		case item == "" || end == "*" || end == "?":
		case err == nil && f.size == 7 && n > 7:
			return fmt.Errorf("a day of the week is 0 to 7, or SUN to SAT")
		case err != nil && f.names != "":
			if _, ok := f.value(end); !ok {
				return fmt.Errorf("%q is no value; write a number or a name of three letters, such as %s", end, f.names[:3])
			}
		case err != nil:
			return fmt.Errorf("%q is no value; write a number from %d to %d", end, f.low, f.high)
		}
	}
	return nil
}

// longStep is a step of an item that is longer than the field, so that only one value would be left.
func (f field) longStep(item string) (int, bool) {
	_, text, _ := strings.Cut(item, "/")
	step, err := strconv.Atoi(text)
	return step, err == nil && step > f.size
}

// tooLong refuses a step that is longer than a field, and names the interval that does what was meant, if
// one does.
func tooLong(place, step int, item string, words []string) error {
	f := fiveFields[place]
	why := fmt.Sprintf("a step of %d is more than the %d %s of the field", step, f.size, f.unit)
	span, _, _ := strings.Cut(item, "/")
	start, ok := f.value(span)
	ok = (ok || span == "*") && item == words[place]
	var interval, from time.Duration
	switch {
	case place == minuteField && ok && allStars(words[hourField:]):
		interval, from = time.Duration(step)*time.Minute, time.Duration(start)*time.Minute
	case place == hourField && ok && allStars(words[dayOfMonth:]):
		minute, isNumber := fiveFields[minuteField].value(words[minuteField])
		if isNumber {
			interval, from = time.Duration(step)*time.Hour, time.Duration(start)*time.Hour+time.Duration(minute)*time.Minute
		}
	}
	if s, err := EveryFrom(interval, from); err == nil {
		return fmt.Errorf("%s; use an interval, %q", why, s)
	}
	return fmt.Errorf("%s; list the times that are meant", why)
}

// allStars reports whether all words are stars.
func allStars(words []string) bool { return strings.Trim(strings.Join(words, ""), "*?") == "" }
