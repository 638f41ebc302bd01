package main

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// scheduleFlags are --every, --cron and --zone.
type scheduleFlags struct {
	every      time.Duration
	cron, zone string
}

// schedule makes the schedule of the options, or notes what is wrong.
func (a *app) schedule(f scheduleFlags, changed func(string) bool) slots.Schedule {
	var s slots.Schedule
	every, cron := changed("every"), changed("cron")
	switch {
	case every && cron:
		a.bad("--every and --cron: give only one of them")
	case !every && !cron:
		a.bad("no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')")
	case every && changed("zone"):
		a.bad("--zone %q: goes with --cron only; slots of --every are the same in all zones", f.zone)
	case every && f.every != 0: // else it was noted as bad
		s = slots.Must(slots.Every(f.every))
	case cron:
		var err error
		if s, err = slots.Cron(f.cron, f.zone); err != nil {
			a.bad("--cron: %w", err)
		}
	}
	return s
}

// interval reads --every.
func interval(s string) (time.Duration, error) {
	d, err := duration(-1<<63, 1<<63-1)(s)
	if err == nil {
		_, err = slots.Every(d)
	}
	return d, err
}

// shortestSlot is the shortest of a week of a schedule that fires hourly.
func shortestSlot(s slots.Schedule) time.Duration {
	shortest, n := slots.MaxInterval, 0
	for slot := range slots.Upcoming(s, time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)) {
		shortest = min(shortest, slot.Length())
		if n++; n == 200 {
			break
		}
	}
	return shortest
}
