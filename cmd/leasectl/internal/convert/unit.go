package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

// unit is what unit files of systemd set.
type unit struct {
	settings []setting
	known    map[string]bool // the keys that were asked for
}

// setting is one assignment in a unit file.
type setting struct{ section, key, value string }

// meaningless are the keys that say nothing about a job.
var meaningless = []string{"Description", "Documentation", "Type"}

// load reads a unit file. The error names it.
func (u *unit) load(name string) error {
	text, err := jobfile.Load(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	section, held := "", ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" && held == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if begun, more := strings.CutSuffix(line, `\`); more {
			held += begun + " "
			continue
		}
		line, held = held+line, ""
		if inner, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(inner, "]")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		u.settings = append(u.settings, setting{section, strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return nil
}

// all are the values of a key, but for those that an empty one takes back.
func (u *unit) all(section, key string) (values []string) {
	u.known[key] = true
	for _, s := range u.settings {
		switch {
		case s.section != section || s.key != key:
		case s.value == "":
			values = nil
		default:
			values = append(values, s.value)
		}
	}
	return values
}

// last is the value of a key that counts, empty if there is none.
func (u *unit) last(section, key string) string {
	values := append([]string{""}, u.all(section, key)...)
	return values[len(values)-1]
}

// others are the keys that nobody asked for.
func (u *unit) others() (keys []string) {
	for _, s := range u.settings {
		if s.section != "Install" && s.value != "" && !u.known[s.key] && !slices.Contains(meaningless, s.key) && !slices.Contains(keys, s.key) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// escapes are the letters after a backslash.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 's': ' ', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v'}

// words splits a command line or a list as systemd does.
func words(line string) (found []string) {
	var word []byte // nil: none has begun
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			word = append(word, cmp.Or(escapes[line[i]], line[i]))
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, word = c, append([]byte{}, word...)
		case quote == 0 && (c == ' ' || c == '\t'):
			if word != nil {
				found, word = append(found, string(word)), nil
			}
		default:
			word = append(word, c)
		}
	}
	if word != nil {
		found = append(found, string(word))
	}
	return found
}

// spanPart matches the beginning of a time span such as 1h 30min: a number, and its unit.
var spanPart = regexp.MustCompile(`^([0-9.]+)\s*([A-Za-z]*)\s*`)

// units are those of a time span.
var units = map[string]time.Duration{
	"": time.Second, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	"usec": time.Microsecond, "msec": time.Millisecond, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "minute": time.Minute, "minutes": time.Minute, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"day": 24 * time.Hour, "days": 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// span reads a time span. It fails for infinity, and for months and years.
func span(text string) (time.Duration, bool) {
	sum := time.Duration(0)
	for text = strings.TrimSpace(text); text != ""; {
		m := spanPart.FindStringSubmatch(text)
		if m == nil {
			return 0, false
		}
		n, err := strconv.ParseFloat(m[1], 64)
		one, ok := units[m[2]]
		part := n * float64(one)
		if err != nil || !ok || part >= 1<<62 {
			return 0, false
		}
		sum, text = sum+time.Duration(part), text[len(m[0]):]
	}
	return sum, sum > 0
}
