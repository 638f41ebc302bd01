package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/firings"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/slots"
)

const nextHelp = `Show the next slots of a schedule, or of a worker type.

With --every or --cron it connects to nothing, and goes by this machine's time. With
--worker-type it reads the schedule that the worker type's newest records name, or its
workers in the roster if they had no slot yet, and the store's time.

Cron specs with a zone are shown in that, too. A note says where clocks are changed within
a slot, so that it is longer or shorter than others, and where a slot begins late because
they skip its time. With --worker-type a note below the table names what may keep its workers
from these slots: orders of operators, such as a pause; a record that can't be obeyed; workers
with another schedule.

With --output json it prints one object:

  workerType   left out without --worker-type
  schedule, zone
  now          RFC 3339 in UTC, as all times but localStart
  slots        a list of
    start, end, localStart  the last one in the zone
    inMs                    from now to its start
    lengthMs
    note                    for people
  note         what may keep workers from the slots, for people; left out if nothing is known`

func (a *app) nextCommand() *cobra.Command {
	var f scheduleFlags
	var name, output string
	count := 5
	timeout := defaultTimeout
	c := &cobra.Command{
		Use:   "next (--every DURATION | --cron SPEC [--zone ZONE] | --worker-type TYPE)",
		Short: "Show the next slots of a schedule, or of a worker type",
		Long:  nextHelp,
		Example: `  leasectl next --cron '30 2 * * *' --zone Europe/Berlin
  leasectl next --worker-type invoice-export --count 1`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			flags := c.Flags()
			if name == "" {
				for _, named := range []string{"store", storeFile} {
					if flags.Changed(named) {
						a.bad("--%s: goes with --worker-type only", named)
					}
				}
				schedule := a.schedule(f, flags)
				if err := a.usage(c); err != nil {
					return err
				}
				return a.showNext(firings.Of(schedule, "", time.Now(), count), output)
			}
			for _, other := range []string{"every", "cron", "zone"} {
				if flags.Changed(other) {
					a.bad("--%s: not with --worker-type, whose schedule is read", other)
				}
			}
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			plan, err := inspect.PlanOf(ctx, t, name)
			if err != nil {
				return err
			}
			if plan.Schedule == "" {
				return exit.With(exit.Failure, errors.New("no schedule of "+name+" is known: it had no slot yet, and the roster has no worker of it"))
			}
			schedule, err := slots.Parse(plan.Schedule)
			if err != nil {
				return exit.With(exit.Failure, errors.New("the newest records of "+name+" name no schedule that can be read"))
			}
			list := firings.Of(schedule, name, plan.Now, count)
			list.Note = plan.Note
			return a.showNext(list, output)
		},
	}
	flags := c.Flags()
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock", anyDuration)
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	option(a, flags, &name, "worker-type", "TYPE", "worker type whose schedule is read", workerType)
	option(a, flags, &count, "count", "N", "how many slots to show (default 5)", number(1, 1000))
	option(a, flags, &output, "output", "table|json", "how to show them (default table)", oneOf("table", "json"))
	option(a, flags, &timeout, "timeout", "DURATION", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}

func (a *app) showNext(l firings.List, output string) error {
	if output == inspect.JSON {
		return l.WriteJSON(a.shown)
	}
	_, err := fmt.Fprint(a.shown, l.Text(a.colour()))
	return err
}
