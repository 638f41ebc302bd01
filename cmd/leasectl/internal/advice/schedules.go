package advice

import (
	"slices"
	"strings"
)

// OneSchedule is what to do about schedules of one worker type that differ. Those of one crontab differ by the time zones of
// the machines that read it.
func OneSchedule(schedules []string) string {
	spec := func(text string) string {
		fields := strings.Fields(text)
		return strings.Join(fields[:min(len(fields), 6)], " ") // cron, and its five fields
	}
	first := spec(schedules[0])
	byZone := strings.HasPrefix(first, "cron ") && !slices.ContainsFunc(schedules, func(s string) bool {
		return spec(s) != first || len(strings.Fields(s)) > 7
	})
	if byZone {
		return "give all workers of the type one time zone: CRON_TZ in a crontab, zone in jobs.yaml, --zone"
	}
	return "give all workers of the type one schedule"
}
