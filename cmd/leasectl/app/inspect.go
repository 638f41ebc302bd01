package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

func (a *app) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Look at ledgers; nothing is ever written",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(needsStore(a.inspectSlotsCommand()), needsStore(a.inspectWorkersCommand()))
	return c
}

const inspectSlotsHelp = `Show who held, holds and will hold the newest slots of a worker type.

CLAIMED is when the slot was claimed, relative to its start. A slot that several
workers held, one after the other, has a row for each; the note says from when to
when, relative to the start of the slot. Extensions within a slot (--failover-within)
are part of its row. A lease that goes on over several slots (--continuous) has a row
for each slot, all with the same token. ATTEMPT is how many times the slot had been
begun by then, this row included (--once-per-slot); the column is left out if no slot
was begun again. The states:

  upcoming    claimed; the lease has not begun
  held        the lease is in force; its holder may have died or stopped since
  expired     the lease ran to the end of its window
  released    the holder gave back the rest of the lease: it stopped, or its job failed,
              and another worker has done it since
  overridden  an operator ended the lease; the note says when
  missed      the slot has passed, and nobody claimed it
  free        the slot has begun, and nobody has claimed it
  done        the slot's work is done (--once-per-slot), or was made up for
              (--run-missed), with any result; nobody runs it again. The note says when, and
              how long it took
  failed      the slot's work has failed, and is not done: the note says with which exit
              code or error, after how long, and whether it was the last attempt. The lease
              may be in force. A worker that dies tells nothing; nor does one whose command
              succeeds, unless it has --once-per-slot
  poison      workers can't obey the record, or don't follow it, because a key below it
              is free; the note says why
  override    no slot, but the record by which an operator ended what was in force: who
              is in the column HOLDER, and when and why in the note (leasectl override)

If the newest record leaves nothing to claim for more than a slot and a day, the note
of the last row says until when, and the command that ends that is shown below the
table. So it is if nothing but poison is left, which no worker supersedes.

With --stale, a secondary of a MongoDB replica set answers, also while there is no
primary. The first lines say which one, and how old its copy is: the newest records may
be missing, so that a slot shown as missed or free may be held.

A record of a kind that this version doesn't know is shown with its kind. All
times are store time, in UTC.

With --timeline it draws who had the slots of the last hour, or of --since, a line for each
worker type: of those that --worker-type names, or of all. A letter stands where a holder
begins, and the line goes on as long as the lease does; what nobody had is never hidden by
what else falls into a column. Times are in UTC.

With --output json it prints one object; with --watch, one per line whenever
something has changed:

  storeTime    time of the store's clock
  store        the store, without secrets
  workerType
  slots        a list, the oldest first, of
    slotStart, slotEnd      left out if the record doesn't say
    state                   see above
    seq, kind               of the record; left out if there is none
    extended, newestSeq     how often the lease was extended within the slot, and
                            the seq of the newest record; left out if never
    instanceId, group       of the holder
    priority, token
    attempt                 how many times the slot had been begun by then; left out
                            if that isn't counted
    claimedMs               when it was claimed, in ms after slotStart
    windowStart, windowEnd  the window of the record and its extensions
    releasedAt              when the rest was given back
    overriddenAt            when an operator ended the lease
    result                  what came of the work: succeeded or failed; this and what
                            follows is left out if the ledger doesn't tell
    givenUp                 true after the last attempt
    exitCode                of the command: 128 more than its number if a signal ended it
    error                   the beginning of the error's text
    workedBy                the worker; in a group not always the one that claimed the slot
    begunAt, endedAt        when the work began and ended, as its worker knew it
    tookMs                  how long it took, in ms
    missedSlots             the number of slots in the row, if there are several
    missedBy                of a slot that nobody had, what workers in the roster say of
                            that very slot: a list of instanceId and reason; left out if
                            none says anything
    note                    for people
  copy         with --stale: server, asOf and ageMs of the copy that was read
  warning      what the store warns of, such as a machine's clock that isn't store time;
               left out if it warns of nothing
  note         what the store adds, such as which members of a replica set can't be
               asked for their clocks; left out if there is nothing to say
  try          the command that ends what leaves nothing to claim for long; left out if
               nothing does
  requestUnits the store's charges for the command so far: total, and byOperation;
               left out if it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

func (a *app) inspectSlotsCommand() *cobra.Command {
	o := inspect.Options{Last: 10, Output: inspect.Table, Interval: time.Second, Timeout: defaultTimeout}
	var types []string
	timeline, since := false, time.Hour
	named := func(text string) (string, error) {
		name, err := workerType(text)
		if err == nil && !slices.Contains(types, name) {
			types = append(types, name)
		}
		return name, err
	}
	c := &cobra.Command{
		Use:   "slots [--worker-type TYPE]",
		Short: "Show who held, holds and will hold the newest slots",
		Long:  inspectSlotsHelp,
		Example: `  leasectl inspect slots --worker-type invoice-export --last 20
  leasectl inspect slots --worker-type invoice-export --watch
  leasectl inspect slots --timeline --since 6h
  leasectl inspect slots --worker-type invoice-export --output json | jq '.slots[-1].instanceId'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			a.checkTimeline(c.Flags(), timeline, o, types)
			if err := a.lookUsage(c, &o); err != nil {
				return err
			}
			if timeline {
				return inspect.Timeline(c.Context(), t, o, types, since, a.screen())
			}
			return inspect.Show(c.Context(), t, o, a.screen())
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: the only one in the ledger); with --timeline it may be given more than once (default: all)", named)
	option(a, flags, &o.Last, "last", "N", "how many slots to show (default 10)", number(1, 1000))
	flags.BoolVar(&o.Stale, "stale", false, "read a secondary's copy, labelled with its age (MongoDB)")
	flags.BoolVar(&timeline, "timeline", false, "draw who had the slots, a line for each worker type")
	option(a, flags, &since, "since", "DURATION", "with --timeline: how far back to draw (default 1h)", duration(time.Second, 31*24*time.Hour))
	a.lookFlags(flags, &o)
	return c
}

// checkTimeline notes the options that don't go with --timeline, or only with it.
func (a *app) checkTimeline(flags *pflag.FlagSet, timeline bool, o inspect.Options, types []string) {
	if !timeline {
		if text, ok := given(flags, "since"); ok {
			a.bad("--since %q: goes with --timeline only", text)
		}
		if len(types) > 1 {
			a.bad("--worker-type %q: is the second one, which goes with --timeline only", types[1])
		}
		return
	}
	if text, ok := given(flags, "last"); ok {
		a.bad("--last %q: not with --timeline: use --since", text)
	}
	if o.Output == inspect.JSON {
		a.bad("--output json: not with --timeline: leave that out for the slots of a worker type")
	}
	if o.Stale {
		a.bad("--stale: not with --timeline")
	}
}

// lookFlags are the flags of all that looks once or again and again.
func (a *app) lookFlags(flags *pflag.FlagSet, o *inspect.Options) {
	option(a, flags, &o.Output, "output", "table|json", "how to show them (default table)", oneOf("table", "json"))
	flags.BoolVar(&o.Watch, "watch", false, "show them again and again, until Ctrl-C")
	option(a, flags, &o.Interval, "interval", "DURATION", "how often to look, with --watch (default 1s)", duration(100*time.Millisecond, time.Hour))
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
}

// lookUsage is the error of all options that were noted, or nil.
func (a *app) lookUsage(c *cobra.Command, o *inspect.Options) error {
	if text, ok := given(c.Flags(), "interval"); ok && !o.Watch {
		a.bad("--interval %q: goes with --watch only", text)
	}
	return a.usage(c)
}

// screen is the standard output for inspect.
func (a *app) screen() inspect.Screen {
	return inspect.Screen{
		Writer: a.shown, Terminal: isTerminal(a.stdout), Colours: a.colour(), Width: a.columns(), ASCII: !a.utf8(),
		Report: func(err error) { a.report(err) },
	}
}

// completeWorkerType completes a worker type by those in the store, and shows no error.
func (a *app) completeWorkerType(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.awaited(c)
	if len(a.problems) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionWait)
	defer cancel()
	types, _ := inspect.WorkerTypes(ctx, t)
	// Never an invalid one: shells obey what they are given as a completion.
	return slices.DeleteFunc(types.Valid, func(name string) bool { return !strings.HasPrefix(name, prefix) }), cobra.ShellCompDirectiveNoFileComp
}
