package slots_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]string{
		"every 5m":                         "every 5m",
		"every 300s":                       "every 5m",
		"  every\t5m0s ":                   "every 5m",
		"every 0.25h":                      "every 15m",
		"cron 0 2 * * *":                   "cron 0 2 * * *",
		"cron 0  2 * * * UTC":              "cron 0 2 * * *",
		"cron 0 2 * * * Europe/Berlin":     "cron 0 2 * * * Europe/Berlin",
		"cron @hourly":                     "cron @hourly",
		"cron @weekly America/Los_Angeles": "cron @weekly America/Los_Angeles",
		"cron 0 0 * JAN-mar Fri":           "cron 0 0 * JAN-mar Fri",
	} {
		s, err := slots.Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %q", text, s, err, want)
			continue
		}
		if again, err := slots.Parse(want); err != nil || again.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want the same text again", want, again, err)
		}
	}
}

func TestParseRefusesOtherText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "want",
		"5m":                           `want "every DURATION" or "cron SPEC [ZONE]"`,
		"@hourly":                      `want "every DURATION" or "cron SPEC [ZONE]"`,
		"* * * * *":                    "want",
		"every":                        "want",
		"every 5 m":                    "want",
		"every 5":                      `every "5": not a duration such as`,
		"every 1ms":                    "at least 100ms",
		"Every 5m":                     "want",
		"cron":                         "empty",
		"cron 0 0 2 * * *":             "6 fields",
		"cron 0 0 2 * * * UTC":         "expected exactly 5 fields",
		"cron @every 5m":               "use an interval",
		"cron TZ=UTC 0 2 * * *":        "pass it as the zone",
		"cron CRON_TZ=UTC 0 2 * * * x": "pass it as the zone",
		"cron 0 2 * * * Local":         "differs from machine to machine",
		"cron 0 2 * * * Mars/Olympus":  "unknown",
		strings.Repeat("every", 200):   "1000 bytes, at most 512",
	} {
		if s, err := slots.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v, want an error with %q", text, s, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"every 5m", "every 1.5s", "every 8784h", "every 1h0m0.1s", "every -1m", "every 9999999999h",
		"cron * * * * *", "cron */7 0-5/2,23 1,15 JAN-DEC MON-fri", "cron 0 2 * * * Europe/Berlin",
		"cron @hourly", "cron @annually Pacific/Apia", "cron @every 1s", "cron @reboot", "cron TZ=", "cron CRON_TZ=UTC * * * * *",
		"cron 0 0 29 2 *", "cron 0 0 30 2 *", "cron 0 0 0 2 * * *", "cron , , , , ,", "cron *-1 * * * *", "cron ? ? ? ? ?",
		"cron 1/18446744073709551615 * * * *", "cron 0-59/9223372036854775807 * * * *", "cron * * * * * Local",
		"cron * * * * * ../../etc/passwd", "cron 30 1 31 */2 6 Australia/Lord_Howe",
	} {
		f.Add(text, int64(1762000000))
		f.Add(text, int64(-1000000007))
	}
	f.Add("cron 30 2 * * * America/Los_Angeles", int64(1741514400))
	f.Add("cron 0 0 30 12 * Pacific/Apia", int64(1325239200))
	f.Add("cron 59 23 * * * Africa/Monrovia", int64(63593070))
	f.Add("cron 0 2 * * * Europe/Berlin", int64(2240524800))
	f.Fuzz(func(t *testing.T, text string, second int64) {
		s, err := slots.Parse(text)
		if err != nil {
			if s != nil {
				t.Fatalf("Parse(%q) = %v and the error %v, want one of them", text, s, err)
			}
			return
		}
		words := strings.Fields(text)
		if words[0] == "every" {
			if interval, err := time.ParseDuration(words[1]); err != nil || s.At(time.Unix(0, 0)).Length() != interval {
				t.Fatalf("Parse(%q) = %v with slots of %v, want %v (%v)", text, s, s.At(time.Unix(0, 0)).Length(), interval, err)
			}
		} else if got, want := s.String(), strings.Join(words, " "); got != want && got+" UTC" != want {
			t.Fatalf("Parse(%q) = %q, want %q", text, got, want)
		}
		again, err := slots.Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("Parse(%q) = %v, %v, want the same again", s.String(), again, err)
		}
		at := time.Unix(second, 0)
		checkPartition(t, s, at)
		if got, want := again.At(at), s.At(at); got != want {
			t.Fatalf("%v: At(%v) = %v after a round trip, want %v", s, at, got, want)
		}
	})
}

// checkPartition checks what a schedule promises, around an instant.
func checkPartition(t testing.TB, s slots.Schedule, at time.Time) {
	t.Helper()
	slot, next := s.At(at), s.Next(at)
	if !slot.IsZero() {
		switch {
		case !slot.Contains(at):
			t.Fatalf("%v: At(%v) = %v, want it to contain the instant", s, at, slot)
		case slot.Length() < slots.MinInterval || slot.Length() > slots.MaxInterval:
			t.Fatalf("%v: At(%v) = %v of length %v, want it between %v and %v", s, at, slot, slot.Length(), slots.MinInterval, slots.MaxInterval)
		case s.At(slot.Start) != slot || s.At(slot.End.Add(-1)) != slot:
			t.Fatalf("%v: At(%v) and At(just before %v) = %v, %v, want %v", s, slot.Start, slot.End, s.At(slot.Start), s.At(slot.End.Add(-1)), slot)
		case s.Next(slot.Start) != next || s.Next(slot.End.Add(-1)) != next:
			t.Fatalf("%v: Next differs within %v: %v, %v, %v", s, slot, s.Next(slot.Start), next, s.Next(slot.End.Add(-1)))
		}
	}
	if !next.IsZero() {
		switch {
		case !next.Start.After(at):
			t.Fatalf("%v: Next(%v) = %v, want a later start", s, at, next)
		case !slot.IsZero() && next.Start != slot.End:
			t.Fatalf("%v: Next(%v) = %v, want it to start at the end of %v", s, at, next, slot)
		case s.At(next.Start) != next:
			t.Fatalf("%v: At(%v) = %v, want %v", s, next.Start, s.At(next.Start), next)
		}
	}
}
