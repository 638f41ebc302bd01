package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// shortestSlot looks at slots of one typical stretch of time, the same for every
// worker: enough for all of a week of any cron schedule that fires hourly.
func shortestSlot(s slots.Schedule) time.Duration {
	shortest := time.Duration(1<<63 - 1)
	n := 0
	for slot := range slots.Upcoming(s, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) {
		shortest = min(shortest, slot.Length())
		if n++; n == 200 {
			break
		}
	}
	return shortest
}
