package firings

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

func TestTheNextSlotsAreShown(t *testing.T) {
	spring := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	job := Of(slots.Must(slots.Cron("30 2 * * *", "Europe/Berlin")), "", spring, 2)
	job.StartWithin = func(slots.Slot) time.Duration { return time.Hour }
	job.Job = &store.JobTimes{StartWithin: time.Hour, Overrun: "finish", Timeout: 3 * time.Hour, CatchUp: "newest", CatchUpWithin: 24 * time.Hour}
	for name, l := range map[string]List{
		"job":    job,
		"every":  Of(slots.Must(slots.Every(5*time.Minute)), "export", spring.Add(30*time.Second), 3),
		"cron":   Of(slots.Must(slots.Cron("30 2 * * *", "Europe/Berlin")), "", spring, 3),
		"back":   Of(slots.Must(slots.Cron("@daily", "America/New_York")), "", time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC), 2),
		"spread": Of(slots.Must(slots.Parse("cron 30 2 * * * Europe/Berlin + cron 0 12 * * 6 Europe/Berlin except 2026-03-30 shifted 7m21.482s")), "report", spring, 4),
		"fine":   Of(slots.Must(slots.Every(250*time.Millisecond)), "", spring, 2),
	} {
		golden.Compare(t, name+".table", l.Text(false))
		var b bytes.Buffer
		if err := l.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name+".json", b.String())
	}
}

// The days on which clocks change: at 2 in the morning in New York, and at 2 and 3 in Berlin.
func TestSlotsOfTheDaysOnWhichClocksChange(t *testing.T) {
	var b strings.Builder
	for _, day := range []struct {
		zone string
		at   time.Time
	}{
		{"Europe/Berlin", time.Date(2026, 3, 28, 23, 45, 0, 0, time.UTC)},
		{"Europe/Berlin", time.Date(2026, 10, 24, 23, 15, 0, 0, time.UTC)},
		{"America/New_York", time.Date(2026, 3, 8, 5, 45, 0, 0, time.UTC)},
		{"America/New_York", time.Date(2026, 11, 1, 4, 15, 0, 0, time.UTC)},
	} {
		for _, spec := range []string{"30 1 * * *", "30 2 * * *", "0 3 * * *", "0 * * * *", "@daily"} {
			l := Of(slots.Must(slots.Cron(spec, day.zone)), "", day.at, 3)
			b.WriteString(l.Text(false) + "\n")
		}
	}
	golden.Compare(t, "changes.table", b.String())
}
