package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

const inspectWorkersHelp = `Show the workers that are there, who holds, and why the others don't.

The workers write that themselves, in the ledger's roster: those of leasectl run, but for
--no-roster, and those of applications with ClientOptions.Roster. Each does so at least
once for each slot, or every 5 min if that is more often, so all but who holds may be as
old. What they say decides about no lease. Who holds comes from the ledger: if that is none
of the workers here, such as one with --no-roster, it is named below the table. Workers that
were last seen more than 24 h ago are not shown. The states:

  holds          the lease in force is this worker's, or its group's
  candidate      it contends for the next slot
  standby        another has the slot; it takes over if that dies (--failover-within)
  not eligible   its health check finds it unfit to lead; the note says why
  stepping back  it failed in slot after slot, so that others go first
  stopped        it stopped, and is remembered for its failures
  gone           it has not been seen when it should have been: it died, or can't
                 reach the store. Until that shows, it is in its old state: for up
                 to 25 s, or a slot and 15 s if that is more, at most 5 min 15 s

HOST is left out if all are on one. PRIO is its priority, and the one by which it claims at present if that is another. CLOCK
is its time of day less store time, + if it is ahead, and how exactly it knows store time. No
lease depends on a time of day. The note says why it is in its state,
why it did not get its newest slot, and has its labels.

With --output json it prints one object; with --watch, one per line whenever something
has changed:

  storeTime    time of the store's clock
  store        the store, without secrets
  workers      a list, by worker type and instance, of
    workerType, instanceId
    group
    state                   see above
    holds, present          true or false
    eligible, ineligible    true or false, and why not
    score                   health score, 0 to 1; left out if it has none
    priority, effectivePriority, why
    missed                  why it did not get its newest slot; left out if it did
    failures                slots in a row in which it failed; left out if there are none
    stepsBackUntil          until when others go first
    offsetMs, uncertaintyMs of its time of day, and of store time as it knows it
    host, pid, version      of its process
    schedule, labels
    since, seen             when it began, and was last seen
  absentHolders  who holds a lease and isn't in the roster: workerType, instanceId and
               group; left out if nobody does
  warning      what the store warns of; left out if it warns of nothing
  requestUnits the store's charges for the command so far: total, and byOperation;
               left out if it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

func (a *app) inspectWorkersCommand() *cobra.Command {
	o := inspect.Options{Output: inspect.Table, Interval: time.Second, Timeout: defaultTimeout}
	c := &cobra.Command{
		Use:   "workers [--worker-type TYPE]",
		Short: "Show the workers that are there, who holds, and why the others don't",
		Long:  inspectWorkersHelp,
		Example: `  leasectl inspect workers
  leasectl inspect workers --worker-type invoice-export --watch
  leasectl inspect workers --output json | jq '.workers[] | select(.holds) | .instanceId'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if err := a.lookUsage(c, &o); err != nil {
				return err
			}
			return inspect.Workers(c.Context(), t, o, a.screen())
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: all)", workerType)
	a.lookFlags(flags, &o)
	return c
}
