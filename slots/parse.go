package slots

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parse reads the text form of a schedule, which is at most 512 bytes long:
//
//	every DURATION [from TIME]   such as "every 5m"; see Every and EveryFrom
//	cron SPEC [ZONE]             such as "cron 0 2 * * * Europe/Berlin"; see Cron
//	SCHEDULE + SCHEDULE …        of these; see Join
//	… except DATE,DATE…          such as "cron 0 2 * * * except 2026-12-25"; see Except
//	… shifted DURATION           what Spread has chosen
//
// The duration is as for [time.ParseDuration]. What Parse accepts can be read again
// from the schedule's String, with the same result.
func Parse(text string) (Schedule, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("schedule: the text has %d bytes, at most %d are allowed", len(text), maxText)
	}
	words := strings.Fields(text)
	words, by := cutLast(words, "shifted")
	words, dates := cutLast(words, "except")
	parts := []Schedule{}
	for len(words) > 0 || len(parts) == 0 {
		n := slices.Index(words, "+")
		if n < 0 {
			n = len(words)
		}
		part, err := parsePart(words[:n], text)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		if words = words[n:]; len(words) == 1 {
			return nil, fmt.Errorf("schedule %q: %s", text, forms)
		}
		words = words[min(1, len(words)):]
	}
	s, err := Join(parts...)
	if err == nil && dates != "" {
		s, err = Except(s, strings.Split(dates, ",")...)
	}
	if err == nil && by != "" {
		d, durationErr := time.ParseDuration(by)
		if durationErr != nil {
			return nil, fmt.Errorf("shifted %q: not a duration such as 90s, 5m or 1h30m", by)
		}
		s, err = shift(s, d)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// cutLast cuts off the last two words, if the first of them is a keyword, and returns the other.
func cutLast(words []string, keyword string) (rest []string, value string) {
	if n := len(words) - 2; n > 0 && words[n] == keyword {
		return words[:n], words[n+1]
	}
	return words, ""
}

// parsePart reads an interval or a cron schedule.
func parsePart(words []string, text string) (Schedule, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("schedule %q: %s", text, forms)
	}
	switch kind, rest := words[0], words[1:]; {
	case kind == "every" && (len(rest) == 1 || len(rest) == 3 && rest[1] == "from"):
		return parseEvery(rest)
	case kind == "cron":
		return Cron(splitZone(rest))
	default:
		return nil, fmt.Errorf("schedule %q: %s", text, forms)
	}
}

// forms describes the texts that Parse reads.
const forms = `want "every DURATION" or "cron SPEC [ZONE]", such as "every 5m" or "cron 0 2 * * * Europe/Berlin"`

// splitZone splits off the zone after a spec: after one word if that is a descriptor,
// else after five. A sixth word that can't be a zone stays in the spec, which is then
// refused, as six fields and a zone are.
func splitZone(words []string) (spec, zone string) {
	fields := 5
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		fields = 1
	}
	last := len(words) - 1
	if (last == fields || last == 6) && !strings.Contains(words[0], "=") && isLetter(words[last][0]) && !isWeekday(words[last]) {
		zone, words = words[last], words[:last]
	}
	return strings.Join(words, " "), zone
}

// isWeekday reports whether a word is the last of six fields and no zone: a name of a weekday, alone or
// with what may follow it.
func isWeekday(word string) bool {
	_, ok := fiveFields[dayOfWeek].value(word[:min(len(word), 3)])
	return ok && (len(word) <= 4 || strings.ContainsAny(word[3:4], "-,#/"))
}

// isLetter reports whether b is an ASCII letter.
func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }
