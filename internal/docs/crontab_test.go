package docs

import (
	"regexp"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// cron starts the command by its zone, and each start has to meet another slot than the one before,
// also on a machine whose clock is a second early.
func TestTheCrontabMeetsASlotForEachStart(t *testing.T) {
	line := regexp.MustCompile(`(?m)^(\S+ \S+ \S+ \S+ \S+) leasectl run --once .*--cron '([^']*)' --zone \S+ `).FindStringSubmatch(read(t, "docs/leasectl.md").text)
	if line == nil {
		t.Fatal("docs/leasectl.md has no line of a crontab with --cron and --zone")
	}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Europe/London", "Europe/Lisbon", "Africa/Casablanca", "Australia/Lord_Howe"} {
		starts, schedule := slots.Must(slots.Cron(line[1], zone)), slots.Must(slots.Cron(line[2], zone))
		var last slots.Slot
		for start := range slots.Upcoming(starts, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
			if start.Start.Year() > 2027 {
				break
			}
			early, late := schedule.At(start.Start.Add(-time.Second)), schedule.At(start.Start.Add(time.Minute))
			if early != late || early == last {
				t.Errorf("%s: the start at %v meets %v and %v, and the one before %v", zone, start.Start, early, late, last)
			}
			last = late
		}
	}
}
