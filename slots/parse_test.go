package slots_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]string{
		"every 5m":                                  "every 5m",
		"every 300s":                                "every 5m",
		"  every\t5m0s ":                            "every 5m",
		"every 0.25h":                               "every 15m",
		"cron 0 2 * * *":                            "cron 0 2 * * *",
		"cron 0  2 * * * UTC":                       "cron 0 2 * * *",
		"cron 0 2 * * * Europe/Berlin":              "cron 0 2 * * * Europe/Berlin",
		"cron @hourly":                              "cron @hourly",
		"cron @weekly America/Los_Angeles":          "cron @weekly America/Los_Angeles",
		"cron 0 0 * JAN-mar Fri":                    "cron 0 0 * JAN-mar Fri",
		"cron 0 0 LW * * Europe/Berlin":             "cron 0 0 LW * * Europe/Berlin",
		"cron 0 0 * * Sun#1 MST":                    "cron 0 0 * * Sun#1 MST",
		"every 90m from 00:30":                      "every 1h30m from 00:30",
		"every 90m from 02:00":                      "every 1h30m from 00:30",
		"every 1h from 00:00:00.5":                  "every 1h from 00:00:00.5",
		"every 336h from 1970-01-07T06:00:00Z":      "every 336h from 1970-01-07T06:00:00Z",
		"every 336h from 2026-01-07T07:00:00+01:00": "every 336h from 1970-01-07T06:00:00Z",
		"every 24h from 9999-12-31T06:00:00Z":       "every 24h from 06:00",
		"every 100ms from 0001-01-01T00:00:00Z":     "every 100ms",
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
		"cron 0 0 2 * * * UTC":         "drop the seconds",
		"cron 0 0 2 * * MON":           "drop the seconds",
		"cron 0 0 2 * * TUE,FRI":       "drop the seconds",
		"every 5m from":                "want",
		"every 5m from noon":           "not a time of day",
		"every 5m from 24:00":          "not a time of day",
		"every 5m from 00:00:00.0001":  "whole milliseconds",
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
		"every 90m from 00:30", "every 1s from 23:59:59.9999", "every 336h from 9999-12-31T23:59:59Z", "every 5m from -1:00",
		"cron 0 0 L-3,15W 1/2 fri#5", "cron 0 0 ,L,1-3/99 * 7", "cron 0 0 * * 6-7/2,SAT-SUN", "cron H(0-29)/10 ~ * * *", "cron 0 10 ? * 2L *",
		"cron rate(5 minutes)", "cron cron(cron(* * * * *))", "cron rate(99999999999999999999 days)", "cron Mon..Fri *:0/5", "cron @every_minute",
		"cron 0 0 29 2 *", "cron 0 0 30 2 *", "cron 0 0 0 2 * * *", "cron , , , , ,", "cron *-1 * * * *", "cron ? ? ? ? ?",
		"cron 1/18446744073709551615 * * * *", "cron 0-59/9223372036854775807 * * * *", "cron * * * * * Local",
		"cron * * * * * ../../etc/passwd", "cron 30 1 31 */2 6 Australia/Lord_Howe",
	} {
		f.Add(text, int64(1762000000))
		f.Add(text, int64(-1000000007))
	}
	for _, text := range []string{
		"cron 0 2 * * 1-5 + cron 0 12 * * 6 + every 7m from 00:03", "every 1s + every 1s from 00:00:00.9", "every 5m +", "+ +",
		"cron @hourly America/St_Johns except 2009-11-01,2009-11-03..2010-10-01", "every 100ms except 2026-01-01..2026-12-31", "cron @yearly except 2026-01-01",
		"cron 0 2 * * * except 9999-12-31", "every 1h shifted 59m59.999s", "cron 0 2 * * * Europe/Berlin shifted 7m21.482s shifted 1s", "every 8784h shifted 8784h",
	} {
		f.Add(text, int64(1257044400))
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
		if slices.ContainsFunc(words, func(word string) bool { return word == "+" || word == "except" || word == "shifted" }) {
			// The parts are in order, without those that occur twice.
		} else if words[0] == "every" {
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
