package slots_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
)

func TestCronSlotsLastFromOneFiringToTheNext(t *testing.T) {
	for _, c := range []struct {
		text, at, start, end string
	}{
		{"cron * * * * *", "2025-01-01T12:01:30Z", "2025-01-01T12:01:00Z", "2025-01-01T12:02:00Z"},
		{"cron */10 * * * *", "2025-01-01T12:01:30Z", "2025-01-01T12:00:00Z", "2025-01-01T12:10:00Z"},
		{"cron */10 * * * *", "2025-01-01T12:10:00Z", "2025-01-01T12:10:00Z", "2025-01-01T12:20:00Z"},
		{"cron */10 * * * *", "2025-01-01T12:09:59.999999999Z", "2025-01-01T12:00:00Z", "2025-01-01T12:10:00Z"},
		{"cron 7,50 8-9 * * *", "2025-01-01T12:00:00Z", "2025-01-01T09:50:00Z", "2025-01-02T08:07:00Z"},
		{"cron 7,50 8-9 * * *", "2025-01-01T08:49:00Z", "2025-01-01T08:07:00Z", "2025-01-01T08:50:00Z"},
		{"cron 0 2 * * *", "2025-01-01T01:59:59Z", "2024-12-31T02:00:00Z", "2025-01-01T02:00:00Z"},
		{"cron 0 2 * * * Asia/Kathmandu", "2025-01-01T00:00:00Z", "2024-12-31T20:15:00Z", "2025-01-01T20:15:00Z"},
		{"cron @hourly", "2025-01-01T01:59:59Z", "2025-01-01T01:00:00Z", "2025-01-01T02:00:00Z"},
		{"cron @daily", "2025-01-01T01:59:59Z", "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"},
		{"cron @midnight", "2025-01-01T01:59:59Z", "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"},
		{"cron @weekly", "2025-01-01T01:59:59Z", "2024-12-29T00:00:00Z", "2025-01-05T00:00:00Z"},
		{"cron @monthly", "2025-02-28T01:59:59Z", "2025-02-01T00:00:00Z", "2025-03-01T00:00:00Z"},
		{"cron @yearly", "2024-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"cron @annually", "1900-06-01T00:00:00Z", "1900-01-01T00:00:00Z", "1901-01-01T00:00:00Z"},
		{"cron 30 4 31 * *", "2025-04-15T00:00:00Z", "2025-03-31T04:30:00Z", "2025-05-31T04:30:00Z"},
		{"cron 0 0 * * MON-FRI", "2025-01-04T12:00:00Z", "2025-01-03T00:00:00Z", "2025-01-06T00:00:00Z"},
		// Both day fields restricted: either will do.
		{"cron 0 0 13 * FRI", "2025-06-11T00:00:00Z", "2025-06-06T00:00:00Z", "2025-06-13T00:00:00Z"},
		{"cron 0 0 15 * FRI", "2025-06-14T00:00:00Z", "2025-06-13T00:00:00Z", "2025-06-15T00:00:00Z"},
		{"cron 0 0 29 2 MON", "2025-03-01T00:00:00Z", "2025-02-24T00:00:00Z", "2026-02-02T00:00:00Z"},
		{"cron 0 0 29 2 MON", "2024-02-28T00:00:00Z", "2024-02-26T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"cron 0 0 ? * ?", "2025-06-11T01:00:00Z", "2025-06-11T00:00:00Z", "2025-06-12T00:00:00Z"},
		// 1900 and 2100 are no leap years, 2000 is one.
		{"cron 0 0 28,29 2 *", "1900-06-01T00:00:00Z", "1900-02-28T00:00:00Z", "1901-02-28T00:00:00Z"},
		{"cron 0 0 28,29 2 *", "2000-06-01T00:00:00Z", "2000-02-29T00:00:00Z", "2001-02-28T00:00:00Z"},
		{"cron 0 0 28,29 2 *", "2100-06-01T00:00:00Z", "2100-02-28T00:00:00Z", "2101-02-28T00:00:00Z"},
		{"cron 0 0 * * *", "0004-02-29T12:00:00Z", "0004-02-29T00:00:00Z", "0004-03-01T00:00:00Z"},
	} {
		s := schedule(t, c.text)
		want := slots.Slot{Start: instant(t, c.start), End: instant(t, c.end)}
		if got := s.At(instant(t, c.at)); got != want {
			t.Errorf("%v: At(%s) = %v, want %v", s, c.at, got, want)
		}
		if got := s.Next(instant(t, c.at)); got.Start != want.End {
			t.Errorf("%v: Next(%s) = %v, want its start at %v", s, c.at, got, want.End)
		}
	}
}

func TestCronRefusesWhatIsNotASchedule(t *testing.T) {
	for _, c := range []struct {
		spec, zone string
		want       []string
	}{
		{"", "", []string{"empty"}},
		{" \t", "", []string{"empty"}},
		{"* * * *", "", []string{"expected exactly 5 fields"}},
		{"0 0 2 * * *", "", []string{"6 fields", "drop the seconds"}},
		{"60 * * * *", "", []string{"above maximum (59): 60"}},
		{"* * * * 8", "", []string{"0 to 7, or SUN to SAT"}},
		{"*/0 * * * *", "", []string{"positive number"}},
		{"@every 5m", "", []string{"@every", "aligned", `"every 5m"`}},
		{"@reboot", "", []string{"@reboot", "names no time", "init system"}},
		{"@noon", "", []string{"unrecognized descriptor: @noon"}},
		{"TZ=UTC 0 2 * * *", "", []string{"pass it as the zone"}},
		{"CRON_TZ=UTC 0 2 * * *", "", []string{"pass it as the zone"}},
		{"TZ=", "", []string{"pass it as the zone"}},
		{"*-banana * * * *", "", []string{`"*-banana"`, "from a number to a number"}},
		{"5\x00 * * * *", "", []string{`"5\x00"`, "only letters"}},
		{"0 0 30 2 *", "", []string{"never fires"}},
		{"0 0 31 4,6,9,11 *", "", []string{"never fires"}},
		{", 0 * * *", "", []string{"never fires"}},
		{"0 , * * *", "", []string{"never fires"}},
		{"0 0 , 1 *", "", []string{"never fires"}},
		{"0 0 29 2 *", "", []string{"2921 days", "366"}},
		{"0 0 29,30 2 *", "Europe/Berlin", []string{"2921 days", "366"}},
		{"@daily", "Local", []string{`zone "Local"`, "differs from machine to machine"}},
		{"@daily", "localtime", []string{"differs from machine to machine"}},
		{"@daily", "right/Europe/Berlin", []string{`use "Europe/Berlin"`}},
		{"@daily", "posix/Europe/Berlin", []string{`use "Europe/Berlin"`}},
		{"@daily", "Europe/Atlantis", []string{`zone "Europe/Atlantis"`, "unknown"}},
		{"@daily", "Europe", []string{"unknown"}},
		{"@daily", "../etc/passwd", []string{"not a name"}},
		{"@daily", "/etc/passwd", []string{"unknown"}},
		{"@daily", "America/New York", []string{"not a name"}},
		{"@daily", " ", []string{"not a name"}},
		// Both mistakes are reported at once.
		{"0 0 30 2 *", "Local", []string{"never fires", "differs from machine to machine"}},
		{strings.Repeat("1,", 250) + "1 * * * *", "", []string{"515 bytes", "at most 512"}},
		{"@daily", strings.Repeat("x", 600), []string{"at most 512"}},
	} {
		s, err := slots.Cron(c.spec, c.zone)
		if err == nil {
			t.Errorf("Cron(%q, %q) = %v, want an error", c.spec, c.zone, s)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Cron(%q, %q) = %q, want it to name %q", c.spec, c.zone, err, want)
			}
		}
	}
}

func TestCronHasATextWithOneSpaceBetweenFields(t *testing.T) {
	for _, c := range []struct{ spec, zone, want string }{
		{"  0 2\t*  * * ", "", "cron 0 2 * * *"},
		{"0 2 * * *", "UTC", "cron 0 2 * * *"},
		{"0 2 * * *", "Europe/Berlin", "cron 0 2 * * * Europe/Berlin"},
		{"@hourly", "", "cron @hourly"},
		{"@hourly", "Etc/GMT+5", "cron @hourly Etc/GMT+5"},
	} {
		s, err := slots.Cron(c.spec, c.zone)
		if err != nil || s.String() != c.want {
			t.Errorf("Cron(%q, %q) = %v, %v, want %q", c.spec, c.zone, s, err, c.want)
		}
	}
}

func TestNoSlotOutgrowsMaxInterval(t *testing.T) {
	// 1996 has 366 days and in it Lisbon went from UTC+1 back to UTC, so its local year
	// lasted 366 days and 1 h.
	s := schedule(t, "cron @yearly Europe/Lisbon")
	start, cut, end := instant(t, "1995-12-31T23:00:00Z"), instant(t, "1996-12-31T23:00:00Z"), instant(t, "1997-01-01T00:00:00Z")
	for _, c := range []struct {
		at   time.Time
		want slots.Slot
	}{
		{start, slots.Slot{Start: start, End: cut}},
		{cut.Add(-1), slots.Slot{Start: start, End: cut}},
		{cut, slots.Slot{Start: cut, End: end}},
		{end.Add(-1), slots.Slot{Start: cut, End: end}},
	} {
		if got := s.At(c.at); got != c.want {
			t.Errorf("%v: At(%v) = %v, want %v", s, c.at, got, c.want)
		}
	}
}

func TestSchedulesAreQuickToMake(t *testing.T) {
	suites.RealTime(t)
	if testing.Short() {
		t.Skip("measures time")
	}
	for _, text := range []string{
		"cron 0 0 30 2 *",
		"cron 59 23 31 12 * Antarctica/Troll",
		"cron " + strings.Repeat("0-59,", 95) + "1 0 1 1 * Africa/Casablanca",
		"cron " + strings.Repeat("*", 507),
		"cron " + strings.Repeat("* ", 253),
		"every " + strings.Repeat("1ns", 168),
		strings.Repeat(" ", 512),
		"every 100ms except " + strings.Repeat("2026-12-25,", 44) + "2027-01-01",
		"every 100ms except 2026-01-01..2026-12-31,2028-01-01..2028-12-31,2030-01-01..2030-12-31,2032-01-01..2032-12-31",
		"cron * * * * * Africa/Casablanca except 2026-01-01..2026-12-31 shifted 59s",
		"every 100ms" + strings.Repeat(" + every 1s", 45),
	} {
		best := time.Hour
		for range 5 {
			begun := time.Now()
			if s, err := slots.Parse(text); err == nil {
				s.Next(s.At(begun).End)
			}
			best = min(best, time.Since(begun))
		}
		if best > 20*time.Millisecond {
			t.Errorf("Parse(%.40q…) and three slots took %v, want a few ms", text, best)
		}
	}
}
