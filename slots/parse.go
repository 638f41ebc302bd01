package slots

import (
	"fmt"
	"strings"
	"time"
)

// Parse reads the text form of a schedule, which is at most 512 bytes long:
//
//	every DURATION       such as "every 5m"; see Every
//	cron SPEC [ZONE]     such as "cron 0 2 * * * Europe/Berlin"; see Cron
//
// The duration is as for [time.ParseDuration]. What Parse accepts can be read again
// from the schedule's String, with the same result.
func Parse(text string) (Schedule, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("schedule: the text has %d bytes, at most %d are allowed", len(text), maxText)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("schedule %q: %s", text, forms)
	}
	switch kind, rest := words[0], words[1:]; {
	case kind == "every" && len(rest) == 1:
		interval, err := time.ParseDuration(rest[0])
		if err != nil {
			return nil, fmt.Errorf("every %q: not a duration such as 90s, 5m or 1h30m", rest[0])
		}
		return Every(interval)
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
// refused.
func splitZone(words []string) (spec, zone string) {
	fields := 5
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		fields = 1
	}
	if len(words) == fields+1 && !strings.Contains(words[0], "=") && isLetter(words[fields][0]) {
		zone, words = words[fields], words[:fields]
	}
	return strings.Join(words, " "), zone
}

// isLetter reports whether b is an ASCII letter.
func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }
