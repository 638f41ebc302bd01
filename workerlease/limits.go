package workerlease

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/slots"
)

// checkText says what keeps a text from being stored.
func checkText(field, value string, most int) error {
	if len(value) > most {
		return fmt.Errorf("%s: has %d bytes: at most %d allowed", field, len(value), most)
	}
	if i := strings.IndexByte(value, 0); i >= 0 {
		return fmt.Errorf("%s: has a NUL at byte %d: not allowed", field, i)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("%s: is %.70q: must be UTF-8", field, value)
	}
	return nil
}

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
