package slots

import "time"

// typical is from when Shortest looks at slots: the same for every worker.
var typical = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// Shortest is the length of the shortest slot of a schedule, as far as the first 200 slots of the year 2024
// show it: enough for all of a week of any cron schedule that fires hourly. It is the same for every worker.
func Shortest(s Schedule) time.Duration {
	shortest := time.Duration(1<<63 - 1)
	n := 0
	for slot := range Upcoming(s, typical) {
		shortest = min(shortest, slot.Length())
		if n++; n == 200 {
			break
		}
	}
	return shortest
}
