package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

const statusHelp = `Show all worker types at a glance: who holds, what came of the last slot, and what comes next.

SINCE is when the holder began, by the newest records, and UNTIL when its lease ends
unless it is extended. LAST is the newest slot that is over, with its state (see leasectl
inspect slots). NEXT is when the next slot begins, and who has claimed it. WORKERS are
those that are there, and those that are gone, by the roster (see leasectl inspect
workers); the column is left out if the roster is empty. All times are store time, in UTC.

With --output json it prints one object; with --watch, one per line whenever something
has changed:

  storeTime    time of the store's clock
  store        the store, without secrets
  types        a list, in the order of their names, of
    workerType, schedule
    holder                  the slot that is held, as in leasectl inspect slots; left out if
                            nobody holds
    since                   when its holder began
    last                    the newest slot that is over, as in leasectl inspect slots
    nextStart, nextInMs     of the next slot
    claimedBy               who has claimed that
    workersPresent          how many workers are there, by the roster, and how many should
    workersGone             be; left out if the roster is empty
    orders                  of operators, in force: kind, target, at, until, by and why;
                            left out if there are none
    note                    for people
    warnings                a list for people: the last slot failed; who holds isn't there, by
                            the roster; schedules differ; a worker's time of day is off by more
                            than 5s; a name that differs from another by its case only. Left
                            out if there are none
  warning      what the store warns of; left out if it warns of nothing
  requestUnits the store's charges for the command so far: total, and byOperation;
               left out if it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

func (a *app) statusCommand() *cobra.Command {
	o := inspect.Options{Output: inspect.Table, Interval: time.Second, Timeout: defaultTimeout}
	c := &cobra.Command{
		Use:   "status [--worker-type TYPE]",
		Short: "Show all worker types at a glance",
		Long:  statusHelp,
		Example: `  leasectl status
  leasectl status --watch
  leasectl status --output json | jq -r '.types[] | select(.holder == null) | .workerType'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if err := a.lookUsage(c, &o); err != nil {
				return err
			}
			return inspect.Status(c.Context(), t, o, a.screen())
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: all)", workerType)
	a.lookFlags(flags, &o)
	return c
}
