package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

const whyHelp = `Say who had a slot, what each worker that is known did, and why it didn't get it.

TIME is a time of day in UTC, the last one that has passed, such as 02:00, or an instant
such as 2026-03-02T02:00:00Z, which may be in the future. It is store time, as all times
here. Without --at it is now.

The answer comes from the ledger, which keeps the claims of those that won, and from the
roster, which keeps the newest word of each worker, for 24 h (see leasectl inspect
workers). So of the slot at present nearly all is known, and of older ones less: what
isn't known is said to be unknown, and what follows only if a worker's newest word was
true then, too, begins with "Probably".

With --output json it prints one object:

  storeTime    time of the store's clock
  store        the store, without secrets
  workerType
  at           the time that was asked about
  when         past, now or future: how the slot lies to the store's time
  slotStart, slotEnd      left out if the slot isn't known
  holder       the slot of the lease in force at that time, as in leasectl inspect slots;
               left out if there was none
  terms        a list of all that had a part of the slot, as in leasectl inspect slots
  nobody       a list of reasons why nobody had it: reason and text; seq of the record that
               was in the way; workers that say so; order of the operator. Left out if
               somebody had it
  missedSlots, missedFrom, missedUntil
               how many slots in a row nobody had; left out if somebody had it
  unread       true if the time is before all records that are left
  workers      a list, by instance, of
    instanceId, group
    reason                       had, higherPriority, samePriority, lateInTurn, continued,
                                 notEligible, clockUnfit, absent, stopped, notStarted,
                                 paused, preferred, drained, overran, steppedBack,
                                 otherSchedule, unreachable, refused, poisoned, tooLate,
                                 contends or unknown
    certain                      false if it follows from a later word of the worker
    text                         for people
    detail                       what the worker says of it
    order                        kind, target, at, until, by and why of the operator's order
    inRoster                     true or false
    priority, effectivePriority  by its newest word
    since, seen                  when it began, and was last seen
  text         who had it, for people
  warning      what the store warns of; left out if it warns of nothing
  requestUnits the store's charges for the command: total, and byOperation; left out if it
               charges nothing

Times are RFC 3339 in UTC with milliseconds. The exit code is 0 if the question was
answered, whoever had the slot.`

func (a *app) whyCommand() *cobra.Command {
	o := inspect.Options{Output: inspect.Table, Timeout: defaultTimeout}
	var q inspect.Question
	c := &cobra.Command{
		Use:   "why --worker-type TYPE [--at TIME] [--instance-id LABEL]",
		Short: "Say who had a slot, and why others didn't",
		Long:  whyHelp,
		Example: `  leasectl why --worker-type invoice-export
  leasectl why --worker-type invoice-export --at 02:00 --instance-id vm-7
  leasectl why --worker-type invoice-export --output json | jq -r '.workers[] | .instanceId + ": " + .reason'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("worker-type") {
				a.bad("--worker-type is missing: which worker type?")
			}
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			return inspect.Why(c.Context(), t, o, q, a.screen())
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (required)", workerType)
	option(a, flags, &q.At, "at", "TIME", "when, in UTC: 02:00, or an instant as in RFC 3339 (default: now)", inspect.ParseMoment)
	option(a, flags, &q.InstanceID, "instance-id", "LABEL", "the worker that is asked about (default: all that are known)", nonEmpty)
	option(a, flags, &o.Output, "output", "table|json", "how to say it (default table: in sentences)", oneOf("table", "json"))
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}
