package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

func (a *app) inspectCommand() *cobra.Command {
	c := a.group("inspect", "Look at ledgers; nothing is ever written", a.inspectRunCommand(), a.inspectSlotsCommand(), a.inspectWorkersCommand())
	c.SuggestFor = []string{"slots", "workers", "timeline", "output"}
	return c
}

func (a *app) inspectSlotsCommand() *cobra.Command {
	o := inspect.Options{Last: 10, Interval: time.Second, Timeout: defaultTimeout}
	var types []string
	timeline, since := false, time.Hour
	named := func(text string) (string, error) {
		name, err := workerType(text)
		if err == nil && !slices.Contains(types, name) {
			types = append(types, name)
		}
		return name, err
	}
	c := a.onStore("slots [--worker-type TYPE]", "Show who held, holds and will hold the newest slots", func(c *cobra.Command, t storeuri.Target) error {
		if timeline {
			return inspect.Timeline(c.Context(), t, o, types, since, a.screen())
		}
		return inspect.Show(c.Context(), t, o, a.screen())
	})
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: the only one in the ledger); with --timeline it may be given more than once (default: all)", named)
	option(a, flags, &o.Last, "last", "N", "how many of the newest rows to show: a slot has one for each holder (default 10)", number(1, 1000))
	flags.BoolVar(&timeline, "timeline", false, "draw who had the slots, a line for each worker type")
	option(a, flags, &since, "since", "DURATION", "with --timeline: how far back to draw (default 1h)", duration(time.Second, 31*24*time.Hour))
	a.lookFlags(c, &o)
	looks := c.PreRun
	c.PreRun = func(c *cobra.Command, args []string) {
		a.checkTimeline(c.Flags(), timeline, o, types)
		looks(c, args)
	}
	return c
}

// checkTimeline notes the options that don't go with --timeline, or only with it.
func (a *app) checkTimeline(flags *pflag.FlagSet, timeline bool, o inspect.Options, types []string) {
	if !timeline {
		a.goesOnlyWith(flags, "timeline", "since")
		if len(types) > 1 {
			a.bad("--worker-type %q: is the second one, which goes with --timeline only", types[1])
		}
		return
	}
	if text, ok := given(flags, "last"); ok {
		a.bad("--last %q: not with --timeline: use --since", text)
	}
	if o.JSON {
		a.bad("--output json: not with --timeline: leave that out for the slots of a worker type")
	}
}

// lookFlags are the flags of all that looks once or again and again.
func (a *app) lookFlags(c *cobra.Command, o *inspect.Options) {
	flags := c.Flags()
	a.jsonFlag(flags, &o.JSON, "table", "them")
	flags.BoolVar(&o.Watch, "watch", false, "show them again and again, until Ctrl-C")
	option(a, flags, &o.Interval, "interval", "DURATION", "how often to look, with --watch (default 1s)", duration(100*time.Millisecond, time.Hour))
	a.timeoutFlag(flags, &o.Timeout, waitForStore, time.Hour)
	c.PreRun = func(*cobra.Command, []string) {
		if !o.Watch {
			a.goesOnlyWith(flags, "watch", "interval")
		}
	}
}

// screen is the standard output for inspect.
func (a *app) screen() inspect.Screen {
	return inspect.Screen{
		Writer: a.shown, Terminal: isTerminal(a.stdout), Colours: a.colour(), Width: a.columns(),
		Report: func(err error) { a.report(err) },
	}
}

func (a *app) inspectRunCommand() *cobra.Command {
	o := inspect.Options{Last: 10, Timeout: defaultTimeout}
	var at inspect.Moment
	c := a.onStore("run --worker-type TYPE [--at TIME]", "Show the runs of a slot, and what they wrote", func(c *cobra.Command, t storeuri.Target) error {
		return inspect.Run(c.Context(), t, o, at, a.screen())
	})
	flags := c.Flags()
	a.typeFlag(flags, &o.WorkerType, "")
	option(a, flags, &at, "at", "TIME", "in which slot: 02:00, in the zone of the schedule, or an instant as in RFC 3339 (default: the newest with a run whose outcome is known)", inspect.ParseMoment)
	a.jsonFlag(flags, &o.JSON, "table", "it, in lines or as JSON")
	a.timeoutFlag(flags, &o.Timeout, waitForStore, time.Hour)
	return c
}

func (a *app) inspectWorkersCommand() *cobra.Command {
	o := inspect.Options{Interval: time.Second, Timeout: defaultTimeout}
	c := a.onStore("workers [--worker-type TYPE]", "Show the workers that are there, who holds, and why the others don't", func(c *cobra.Command, t storeuri.Target) error {
		return inspect.Workers(c.Context(), t, o, a.screen())
	})
	a.typeFlag(c.Flags(), &o.WorkerType, "all")
	a.lookFlags(c, &o)
	return c
}

func (a *app) statusCommand() *cobra.Command {
	o := inspect.Options{Interval: time.Second, Timeout: defaultTimeout}
	c := a.onStore("status [--worker-type TYPE]", "Show all worker types at a glance", func(c *cobra.Command, t storeuri.Target) error {
		return inspect.Status(c.Context(), t, o, a.screen())
	})
	a.typeFlag(c.Flags(), &o.WorkerType, "all")
	a.lookFlags(c, &o)
	return c
}

func (a *app) whyCommand() *cobra.Command {
	o := inspect.Options{Timeout: defaultTimeout}
	var q inspect.Question
	c := a.onStore("why --worker-type TYPE [--at TIME] [--instance-id LABEL]", "Say who had a slot, and why others didn't", func(c *cobra.Command, t storeuri.Target) error {
		return inspect.Why(c.Context(), t, o, q, a.screen())
	})
	flags := c.Flags()
	a.typeFlag(flags, &o.WorkerType, "")
	require(flags, "worker-type", "which worker type?")
	option(a, flags, &q.At, "at", "TIME", "when: 02:00, in the zone of the schedule, or an instant as in RFC 3339 (default: now)", inspect.ParseMoment)
	option(a, flags, &q.InstanceID, "instance-id", "LABEL", "the worker that is asked about (default: all that are known)", nonEmpty)
	a.jsonFlag(flags, &o.JSON, "table", "it, in sentences or as JSON")
	a.timeoutFlag(flags, &o.Timeout, waitForStore, time.Hour)
	return c
}

// completeWorkerType completes a worker type by those in the store, and shows no error.
func (a *app) completeWorkerType(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.target(c) // which shows nothing of a store that is waited for
	if len(a.problems) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionWait)
	defer cancel()
	types, _ := inspect.WorkerTypes(ctx, t)
	// Never an invalid one: shells obey what they are given as a completion.
	return slices.DeleteFunc(types.Valid, func(name string) bool { return !strings.HasPrefix(name, prefix) }), cobra.ShellCompDirectiveNoFileComp
}
