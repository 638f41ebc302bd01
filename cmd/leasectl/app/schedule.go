package app

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

// schedule makes the schedule of the flags, or notes all their problems. Then it returns
// a schedule by which the other options can still be checked.
func (a *app) schedule(f scheduleFlags, flags *pflag.FlagSet) slots.Schedule {
	every, cron := flags.Changed("every"), flags.Changed("cron")
	if every && cron {
		a.bad("--every and --cron: give only one of them")
	}
	if !every && !cron {
		a.bad("no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')")
	}
	s := slots.Must(slots.Every(slots.MaxInterval)) // No other option is too long for it.
	if text, ok := given(flags, "every"); ok {
		s = a.everySchedule(f.every, text)
	}
	switch {
	case cron:
		if c := a.cronSchedule(f); c != nil && !every {
			s = c
		}
	case flags.Changed("zone"):
		a.bad("--zone %q: goes with --cron only; slots of --every are the same in all zones", f.zone)
	}
	return s
}

// everySchedule makes the schedule of --every. If that is impossible it notes why, and
// makes the nearest.
func (a *app) everySchedule(interval time.Duration, text string) slots.Schedule {
	s, err := slots.Every(interval)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		a.bad("--every %q: %s", text, why)
		near := min(max(interval, slots.MinInterval), slots.MaxInterval)
		return slots.Must(slots.Every(near.Truncate(time.Millisecond)))
	}
	return s
}

// cronSchedule makes the schedule of --cron and --zone, or notes the problems of each.
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
