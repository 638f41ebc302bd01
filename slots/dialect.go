package slots

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// systemdWords are the words of systemd's OnCalendar, as specs.
var systemdWords = map[string]string{
	"minutely": "* * * * *", "hourly": "@hourly", "daily": "@daily", "weekly": "0 0 * * 1", "monthly": "@monthly",
	"quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *", "yearly": "@yearly", "annually": "@yearly",
}

// foreign refuses what other programs take for a spec, and says what to write instead. It is nil for
// five fields without H and ~, and for a descriptor that cron has.
func foreign(spec string) error {
	words := strings.Fields(spec)
	switch {
	case len(words) == 0:
		return errors.New("the spec is empty; want five fields, such as 0 2 * * *, or @hourly")
	case strings.HasPrefix(spec, "@every"):
		if d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(spec, "@every"))); err == nil {
			return fmt.Errorf("@every isn't aligned to the clock, so workers would disagree; use an interval, %q", "every "+tidy(d))
		}
		return errors.New(`@every isn't aligned to the clock, so workers would disagree; use an interval, such as "every 5m"`)
	case strings.HasPrefix(spec, "@reboot"):
		return errors.New("@reboot names no time, so workers would disagree; start what is meant by the machine's init system")
	case strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ="):
		return errors.New("a zone isn't part of the spec; pass it as the zone (in text: after the spec)")
	case systemdWords[strings.ToLower(spec)] != "":
		return fmt.Errorf("a word of systemd; write %q", systemdWords[strings.ToLower(spec)])
	case strings.HasSuffix(spec, ")") && !strings.HasPrefix(strings.ToUpper(words[len(words)-1]), "H("):
		return ofAWS(spec)
	case isOnCalendar(spec):
		return errors.New("an expression of systemd's OnCalendar; write five fields, such as 0 2 * * * where systemd has *-*-* 02:00")
	case strings.HasPrefix(spec, "@"):
		return nil
	case len(words) > 5 && strings.Trim(words[5], "0123456789*?-,/#LW") != "" && !isWeekday(words[5]):
		return fmt.Errorf("%.40q is no field; leave out a user and a command, and write %q", words[5], strings.Join(words[:5], " "))
	case len(words) == 6 || len(words) == 7:
		return moreFields(words)
	case len(words) != 5:
		return fmt.Errorf("expected exactly 5 fields (minute, hour, day of month, month, day of week), found %d", len(words))
	}
	return placed(words)
}

// ofAWS refuses cron(…), rate(…) and at(…).
func ofAWS(spec string) error {
	kind, inner, _ := strings.Cut(strings.TrimSuffix(spec, ")"), "(")
	number, unit, _ := strings.Cut(inner, " ")
	n, err := strconv.ParseInt(number, 10, 32)
	length := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[strings.TrimSuffix(unit, "s")]
	interval, everyErr := Every(min(time.Duration(n), MaxInterval/max(length, 1)+1) * length)
	switch {
	case kind == "cron":
		if err := foreign(inner); err != nil {
			return err
		}
		return fmt.Errorf("the fields stand alone; write %q", inner)
	case kind == "rate" && err == nil && everyErr == nil:
		return fmt.Errorf("rate(…) counts from when it began; use an interval, %q", interval)
	case kind == "at":
		return errors.New("at(…) names one time, and a schedule goes on; start the command once, by at or a timer")
	}
	return errors.New("want five fields, such as 0 2 * * *, or @hourly")
}

// isOnCalendar reports whether a spec has a date or a time of day, as only systemd's have.
func isOnCalendar(spec string) bool {
	return strings.Contains(spec, ":") || strings.Contains(spec, "..") || slices.ContainsFunc(strings.Split(strings.ReplaceAll(spec, ",", " "), " "), func(item string) bool {
		return strings.Count(item, "-") > 1
	})
}

// placed refuses H and ~, which choose a place in a range.
func placed(words []string) error {
	found := ""
	without := slices.Clone(words)
	for i, word := range words {
		items := strings.Split(word, ",")
		for j, item := range items {
			if chosen, ok := chosenFrom(item, fiveFields[i].low); ok {
				found, items[j] = item, chosen
			}
		}
		without[i] = strings.Join(items, ",")
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("field %q chooses a place in a range; write %q, and let Spread (--spread) choose the job's place after that", found, strings.Join(without, " "))
}

// chosenFrom is an item without H or ~: the first value of what it chooses from, or its steps. It is
// false for other items.
func chosenFrom(item string, least int) (string, bool) {
	span, step, stepped := strings.Cut(item, "/")
	low, high, random := strings.Cut(span, "~")
	if letter := strings.ToUpper(span); letter == "H" {
		low = ""
	} else if inner, ok := strings.CutPrefix(letter, "H("); ok {
		low, high, _ = strings.Cut(strings.TrimSuffix(inner, ")"), "-")
	} else if !random {
		return "", false
	}
	switch {
	case stepped && (low == "" || high == ""):
		return "*/" + step, true
	case stepped:
		return low + "-" + high + "/" + step, true
	case low == "":
		return strconv.Itoa(least), true
	}
	return low, true
}

// moreFields refuses six and seven fields: those of AWS end with a year, others begin with seconds, and
// Quartz' may have both. Where ? stands, or a year, weekdays are counted from Sunday as 1.
func moreFields(words []string) error {
	n := len(words)
	seconds, year, five := words[0], "*", words[1:min(n, 6)]
	fromOne := n == 7 || words[3] == "?" || words[5] == "?"
	has, drop := "the first is seconds", "drop the seconds"
	switch {
	case n == 7:
		year, has, drop = words[6], has+" and the last the year", "drop both"
	case !fromOne && (words[2] == "?" || words[4] == "?" || isYear(words[5])):
		seconds, year, five, fromOne = "0", words[5], words[:5], true
		has, drop = "the last is the year, as in AWS", "drop the year"
	}
	why := fmt.Sprintf("the spec has %d fields, want 5 (minute, hour, day of month, month, day of week); %s", n, has)
	interval, isInterval := secondsInterval(seconds, five)
	switch {
	case year != "*":
		return fmt.Errorf("%s, and %s can't be given: a schedule goes on in all years", why, year)
	case isInterval:
		return fmt.Errorf("%s: use an interval, %q", why, "every "+tidy(interval))
	case strings.Trim(seconds, "0") != "":
		return fmt.Errorf("%s, and %s can't be given: a spec fires when a minute begins", why, seconds)
	case !fromOne && named(five)[dayOfWeek] != five[dayOfWeek]:
		return fmt.Errorf("%s: %s, and name the days of the week, because 1 is Sunday in Quartz and Monday here", why, drop)
	case !fromOne && !allStars(five[dayOfMonth:dayOfMonth+1]) && !allStars(five[dayOfWeek:]):
		return fmt.Errorf("%s: %s and one of the days, because either day matches here and both must in Spring", why, drop)
	}
	spec := strings.Join(named(five), " ")
	if _, err := parseFields(spec); err != nil {
		return fmt.Errorf("%s: %s; then %w", why, drop, err)
	}
	return fmt.Errorf("%s: %s, and write %q", why, drop, spec)
}

// secondsInterval is the interval of a spec that is restricted by its seconds only.
func secondsInterval(seconds string, five []string) (time.Duration, bool) {
	_, text, _ := strings.Cut(seconds, "/")
	n, err := strconv.Atoi(text)
	if seconds == "*" {
		n, err = 1, nil
	}
	span := strings.TrimSuffix(seconds, "/"+text)
	return time.Duration(n) * time.Second, err == nil && n > 0 && 60%n == 0 && strings.Trim(span, "*0") == "" && allStars(five)
}

// named are five fields whose weekdays were counted from Sunday as 1, with their names.
func named(five []string) []string {
	out := slices.Clone(five)
	for i, word := range out {
		if word == "?" {
			out[i] = "*"
		} else if strings.HasPrefix(word, "/") {
			out[i] = "*" + word
		}
	}
	if strings.EqualFold(out[dayOfWeek], "L") {
		out[dayOfWeek] = "SAT"
	}
	var b strings.Builder
	before := byte(',')
	for i := range len(out[dayOfWeek]) {
		c := out[dayOfWeek][i]
		if '1' <= c && c <= '7' && before != '/' && before != '#' {
			at := int(c-'1') * 3
			b.WriteString(fiveFields[dayOfWeek].names[at : at+3])
		} else {
			b.WriteByte(c)
		}
		before = c
	}
	out[dayOfWeek] = b.String()
	return out
}

// isYear reports whether a field begins with four digits.
func isYear(word string) bool {
	return len(word) >= 4 && strings.Trim(word[:4], "0123456789") == ""
}
