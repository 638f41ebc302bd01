package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/slots"
)

// scheduleFlags are --every, --cron and --zone.
type scheduleFlags struct {
	every      time.Duration
	cron, zone string
}

// schedule makes the schedule of the options, or notes all that is wrong with
// them. Options that are checked by the length of the slots need the shortest,
// which is known, or zero, without a schedule, too.
func (a *app) schedule(f scheduleFlags, flags *pflag.FlagSet) (s slots.Schedule, shortest time.Duration) {
	every, cron := flags.Changed("every"), flags.Changed("cron")
	if every && cron {
		a.bad("--every and --cron: give only one of them")
	}
	if !every && !cron {
		a.bad("no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')")
	}
	if text, ok := given(flags, "every"); ok {
		shortest = min(max(f.every, slots.MinInterval), slots.MaxInterval)
		var err error
		if s, err = slots.Every(f.every); err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ")
			a.bad("--every %q: %s", text, why)
		}
	}
	switch {
	case cron:
		if s = a.cronSchedule(f); s != nil && !every {
			shortest = shortestSlot(s)
		}
	case flags.Changed("zone"):
		a.bad("--zone %q: goes with --cron only; slots of --every are the same in all zones", f.zone)
	}
	return s, shortest
}

// cronSchedule makes the schedule of --cron and --zone, or notes what is wrong
// with each.
func (a *app) cronSchedule(f scheduleFlags) slots.Schedule {
	_, specErr := slots.Cron(f.cron, "")
	if specErr != nil {
		a.bad("--cron %q: %w", f.cron, cause(specErr))
	}
	_, zoneErr := slots.Cron("@daily", f.zone)
	if zoneErr != nil {
		a.bad("--zone %q: %w", f.zone, reason(cause(zoneErr), fmt.Sprintf("zone %q", f.zone)))
	}
	if specErr != nil || zoneErr != nil {
		return nil
	}
	s, err := slots.Cron(f.cron, f.zone)
	if err != nil {
		a.bad("--cron and --zone: %w", err)
		return nil
	}
	return s
}

// cause is an error without the spec in front of it.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
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
