package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/slots"
)

// scheduleFlags are the flags of a schedule.
type scheduleFlags struct {
	every, spread          time.Duration
	cron, except           []string
	from, zone, exceptFile string
}

// scheduleFlags adds the flags of a schedule.
func (a *app) scheduleFlags(flags *pflag.FlagSet, f *scheduleFlags) {
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock", anyDuration)
	option(a, flags, &f.from, "from", "HH:MM", "with --every: when a slot begins, in UTC (default 00:00)", nonEmpty)
	flags.StringArrayVar(&f.cron, "cron", nil, "cron `SPEC` (five fields): slots begin then; may be repeated")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	flags.StringArrayVar(&f.except, "except", nil, "`DATE` or DATE..DATE when no slot begins; may be repeated")
	option(a, flags, &f.exceptFile, "except-file", "PATH", "file of such dates, one a line, with comments after #", nonEmpty)
	option(a, flags, &f.spread, "spread", "DURATION", "slots begin later, by less than this: by the type's name", nonZero)
}

// schedule makes the schedule of the flags, or notes all their problems. Then it returns
// a schedule by which the other options can still be checked.
func (a *app) schedule(f scheduleFlags, flags *pflag.FlagSet, workerType string) slots.Schedule {
	problems := len(a.problems)
	s := a.base(f, flags)
	dates := a.dates(f)
	if len(a.problems) > problems {
		return s
	}
	without, err := slots.Except(s, dates...)
	if err != nil {
		a.bad("--%w", err)
		return s
	}
	if f.spread == 0 {
		return without
	}
	if workerType == "" {
		a.bad("--spread %v: the place goes by the name of the worker type: give --worker-type", f.spread)
		return without
	}
	spread, err := slots.Spread(without, f.spread, workerType)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		a.bad("--spread %v: %s", f.spread, why)
		return without
	}
	return spread
}

// base is the schedule without dates, and not spread.
func (a *app) base(f scheduleFlags, flags *pflag.FlagSet) slots.Schedule {
	every, cron := flags.Changed("every"), flags.Changed("cron")
	if every && cron {
		a.bad("--every and --cron: give only one of them")
	}
	if !every && !cron {
		a.bad("no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')")
	}
	if !every {
		a.goesOnlyWith(flags, "every", "from")
	}
	s := slots.Must(slots.Every(slots.MaxInterval)) // No other option is too long for it.
	if text, ok := given(flags, "every"); ok {
		s = a.everySchedule(f, text)
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

// everySchedule makes the schedule of --every and --from. If that is impossible it notes why, and
// makes the nearest.
func (a *app) everySchedule(f scheduleFlags, text string) slots.Schedule {
	s, err := slots.Every(f.every)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		a.bad("--every %q: %s", text, why)
		near := min(max(f.every, slots.MinInterval), slots.MaxInterval)
		return slots.Must(slots.Every(near.Truncate(time.Millisecond)))
	}
	if f.from == "" {
		return s
	}
	from, err := slots.Parse(s.String() + " from " + f.from)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		a.bad("--from %q: %s", f.from, why)
		return s
	}
	return from
}

// cronSchedule makes the schedule of --cron and --zone, or notes the problems of each.
func (a *app) cronSchedule(f scheduleFlags) slots.Schedule {
	_, zoneErr := slots.Cron("@daily", f.zone)
	if zoneErr != nil {
		a.bad("--zone %q: %w", f.zone, reason(cause(zoneErr), fmt.Sprintf("zone %q", f.zone)))
	}
	var all []slots.Schedule
	for _, spec := range f.cron {
		_, err := slots.Cron(spec, "")
		if err != nil {
			a.bad("--cron %q: %w", spec, cause(err))
			continue
		}
		s, err := slots.Cron(spec, f.zone)
		if err == nil {
			all = append(all, s)
		} else if zoneErr == nil {
			a.bad("--cron and --zone: %w", err)
		}
	}
	if len(all) < len(f.cron) {
		return nil
	}
	s, err := slots.Join(all...)
	if err != nil {
		a.bad("--cron: %w", err)
		return nil
	}
	return s
}

// dates are those of --except and --except-file. What isn't one is noted.
func (a *app) dates(f scheduleFlags) (dates []string) {
	daily := slots.Must(slots.Every(24 * time.Hour))
	read := func(from, texts string) {
		for text := range strings.SplitSeq(texts, ",") {
			text = strings.TrimSpace(text)
			if _, err := slots.Except(daily, text); err != nil {
				_, why, _ := strings.Cut(err.Error(), ": ")
				a.bad("%s %q: %s", from, text, why)
			}
			dates = append(dates, text)
		}
	}
	for _, texts := range f.except {
		read("--except", texts)
	}
	if f.exceptFile == "" {
		return dates
	}
	text, err := readDates(f.exceptFile)
	if err != nil {
		a.bad("--except-file: %w", err)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			read(fmt.Sprintf("--except-file %s:%d:", f.exceptFile, number), line)
		}
	}
	return dates
}

// readDates reads a file of dates.
func readDates(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // It was only read.
	const most = 1 << 16
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s is longer than %d KiB", path, most>>10)
	}
	return string(text), err
}

// cause is an error without the spec in front of it.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
