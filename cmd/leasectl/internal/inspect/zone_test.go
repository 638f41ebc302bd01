package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// berlin is the schedule of a nightly job.
const berlin = "cron 0 2 * * * Europe/Berlin"

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return at
}

func TestATimeOfDayIsThatOfTheZone(t *testing.T) {
	for _, c := range []struct{ now, text, want string }{
		{"2026-03-02T01:30:00Z", "02:00", "2026-03-02T01:00:00Z"},
		{"2026-03-02T01:30:00Z", "02:30", "2026-03-02T01:30:00Z"},
		{"2026-03-02T01:30:00Z", "02:30:01", "2026-03-01T01:30:01Z"},
		{"2026-03-02T01:30:00Z", "02:00Z", "2026-03-01T02:00:00Z"},
		{"2026-03-02T23:30:00Z", "00:15", "2026-03-02T23:15:00Z"},
		{"2026-03-29T12:00:00Z", "02:30", "2026-03-28T01:30:00Z"}, // There is none that day.
		{"2026-10-25T12:00:00Z", "02:30", "2026-10-25T01:30:00Z"}, // It comes twice.
		{"2026-10-25T01:00:00Z", "02:30", "2026-10-25T00:30:00Z"},
	} {
		m, err := ParseMoment(c.text)
		if got := m.Before(instant(t, c.now), zone(berlin)).Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%s in Berlin at %s = %s, %v, want %s", c.text, c.now, got, err, c.want)
		}
	}
}

// nightly is a ledger in which two nights are done, 7 h after the second began.
func nightly(t *testing.T) *memory.Ledger {
	t.Helper()
	l := ledgerAt(instant(t, "2026-03-02T08:00:00Z"))
	for i := range 2 {
		start := instant(t, "2026-03-01T01:00:00Z").AddDate(0, 0, i)
		r := recordtest.Grant(int64(2*i+1), 0, "worker-a")
		r.Schedule, r.Attempt, r.SlotStart, r.SlotEnd, r.Token = berlin, 1, start, start.AddDate(0, 0, 1), start.UnixMilli()
		r.WindowStart, r.WindowEnd, r.FixedAt, r.ReadAt, r.Claim = start, r.SlotEnd, start.Add(-9*time.Second), start.Add(-9*time.Second), start.String()
		l.Put(r)
		done := recordtest.Done(r, int64(2*i+2), r.SlotEnd, start.Add(time.Minute))
		done.WindowStart, done.WindowEnd = r.WindowEnd, r.WindowEnd
		done.Metadata = recordtest.Outcome(r, start.Add(time.Minute), store.Succeeded).Metadata()
		l.Put(done)
	}
	return l
}

func TestTimesOfAScheduleWithAZoneAreShownInThatToo(t *testing.T) {
	l := nightly(t)
	o := Options{WorkerType: "export", Last: 10, Timeout: time.Minute}
	to := storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}
	at, err := ParseMoment("02:00")
	must(t, err)
	for name, c := range map[string]struct {
		show func(Options, Screen) error
		text []string
	}{
		"status": {func(o Options, s Screen) error { return showStatus(t.Context(), to, l, o, s) }, []string{"01:00:00Z (02:00) done", "in 17h (02:00)"}},
		"why":    {func(o Options, s Screen) error { return showWhy(t.Context(), to, l, o, Question{At: at}, s) }, []string{"the slot from 01:00:00Z (02:00 Europe/Berlin) to 2026-03-03T01:00:00Z"}},
		"run":    {func(o Options, s Screen) error { return showRun(t.Context(), to, l, o, at, s) }, []string{"slot from 2026-03-02T01:00:00Z (02:00 Europe/Berlin) to 2026-03-03T01:00:00Z"}},
	} {
		var text, json bytes.Buffer
		o.JSON = false
		err := c.show(o, Screen{Writer: &text})
		flat := strings.Join(strings.Fields(text.String()), " ")
		for _, want := range c.text {
			if err != nil || !strings.Contains(flat, strings.ReplaceAll(want, "2026-03-02T", "")) && !strings.Contains(flat, want) {
				t.Errorf("%s = %v\n%s\nwant %q", name, err, &text, want)
			}
		}
		for line := range strings.Lines(text.String()) {
			if display.Width(line) > 101 { // with its end
				t.Errorf("%s has a line of %d columns: %s", name, display.Width(line), line)
			}
		}
		o.JSON = true
		err = c.show(o, Screen{Writer: &json})
		if err != nil || !strings.Contains(json.String(), `Start": "2026-03-02T01:00:00.000Z"`) || strings.Contains(json.String(), "+01:00") {
			t.Errorf("%s as JSON = %v\n%s\nwant all times in UTC", name, err, &json)
		}
	}
}

// What a clock shows in the zone has a date where that is another than in UTC's.
func TestATimeBesideHasItsDateIfThatIsAnother(t *testing.T) {
	for at, want := range map[string]string{"2026-03-02T20:00:00Z": " (2026-03-03 05:00 Asia/Tokyo)", "2026-03-02T03:00:30Z": " (12:00:30 Asia/Tokyo)"} {
		if got := beside(instant(t, at), zone("cron 0 5 * * * Asia/Tokyo"), true); got != want {
			t.Errorf("beside %s stands %q, want %q", at, got, want)
		}
	}
	if got := beside(recordtest.Noon, zone("cron 0 5 * * *"), true) + beside(recordtest.Noon, zone("every 5m"), true) + beside(recordtest.Noon, zone("?"), true); got != "" {
		t.Errorf("beside a time of a schedule without a zone stands %q, want nothing", got)
	}
}
