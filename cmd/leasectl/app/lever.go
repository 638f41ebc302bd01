package app

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/override"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// lever makes a command that gives an order.
func (a *app) lever(use, short string, o *lever.Options, give func(c *cobra.Command, t storeuri.Target) error) *cobra.Command {
	o.Timeout = defaultTimeout
	return a.onStore(use, short, func(c *cobra.Command, t storeuri.Target) error {
		o.By, o.Ask = operator(), a.asker(c)
		return give(c, t)
	})
}

// leverFlags adds the options of all levers. byDefault is what an order is about without a worker type.
func (a *app) leverFlags(c *cobra.Command, o *lever.Options, byDefault string) {
	a.typeFlag(c.Flags(), &o.WorkerType, byDefault)
	option(a, c.Flags(), &o.Reason, "reason", "TEXT", reasonUsage, nonEmpty)
	a.jsonFlag(c.Flags(), &o.JSON, "table", "what was written")
	a.timeoutFlag(c.Flags(), &o.Timeout, waitForStore, time.Hour)
}

// lasting adds the options of an order that lasts, one of which has to be given, and that may begin at once.
func (a *app) lasting(c *cobra.Command, o *lever.Options, atOnce string) {
	flags := c.Flags()
	option(a, flags, &o.Until, "until", "TIME", "when it ends, in store time, such as 2026-03-02T12:00:00Z", instant)
	option(a, flags, &o.For, "for", "DURATION", "how long it lasts from now on, in place of --until", duration(time.Millisecond, 366*24*time.Hour))
	flags.BoolVar(&o.Now, "now", false, "at once: "+atOnce)
	c.PreRun = func(*cobra.Command, []string) {
		if flags.Changed("until") == flags.Changed("for") {
			a.bad("give one of --until and --for: an order ends by itself")
		}
	}
}

func (a *app) pauseCommand() *cobra.Command {
	o := lever.Options{}
	c := a.lever("pause --worker-type TYPE (--for DURATION | --until TIME)", "Let no worker claim for a while", &o, func(c *cobra.Command, t storeuri.Target) error {
		return lever.Pause(c.Context(), t, o, a.shown)
	})
	a.leverFlags(c, &o, "")
	a.lasting(c, &o, "the holder stops when it reads the order")
	c.Flags().BoolVar(&o.Yes, "yes", false, "don't ask")
	return c
}

func (a *app) resumeCommand() *cobra.Command {
	o, kind := lever.Options{}, string(store.OrderPause)
	c := a.lever("resume --worker-type TYPE", "End a pause, or another order, before its time", &o, func(c *cobra.Command, t storeuri.Target) error {
		o.Kind = store.OrderKind(kind)
		return lever.Resume(c.Context(), t, o, a.shown)
	})
	a.leverFlags(c, &o, "")
	option(a, c.Flags(), &kind, "kind", "pause|prefer|release|drain|trigger", "the order that is to end (default pause)", oneOf("pause", "prefer", "release", "drain", "trigger"))
	option(a, c.Flags(), &o.Target, "host", "NAME", "with --kind drain: of which host (default: all)", nonEmpty)
	c.Flags().BoolVar(&o.Risk, "risk-two-holders", false, "end the pause of leasectl copy, too, though workers with the other store may hold the lease")
	return c
}

func (a *app) preferCommand() *cobra.Command {
	o := lever.Options{}
	c := a.lever("prefer --worker-type TYPE --instance-id LABEL (--for DURATION | --until TIME)", "Let one worker go first for a while", &o, func(c *cobra.Command, t storeuri.Target) error {
		return lever.Prefer(c.Context(), t, o, a.shown)
	})
	a.leverFlags(c, &o, "")
	a.lasting(c, &o, "a holder that isn't preferred steps down when it extends its lease")
	option(a, c.Flags(), &o.Target, "instance-id", "LABEL", "the worker that goes first (required)", nonEmpty)
	require(c.Flags(), "instance-id", "name the worker that goes first, as leasectl inspect workers shows it")
	return c
}

func (a *app) triggerCommand() *cobra.Command {
	o := lever.Options{}
	c := a.lever("trigger --worker-type TYPE", "Run a job once more now, on one machine", &o, func(c *cobra.Command, t storeuri.Target) error {
		return lever.Trigger(c.Context(), t, o, a.shown, a.told())
	})
	a.leverFlags(c, &o, "")
	option(a, c.Flags(), &o.For, "within", "DURATION", "how long it may wait to begin (default 1h)", duration(10*time.Second, 24*time.Hour))
	c.Flags().BoolVar(&o.IfIdle, "if-idle", false, "do nothing, with exit code 10, if a run may be in progress")
	c.Flags().BoolVar(&o.Wait, "wait", false, "wait for the end of the run: exit code 0 if it succeeds, 13 if its attempts are used up, 14 if nobody ran it")
	return c
}

func (a *app) drainCommand() *cobra.Command {
	o := lever.Options{}
	c := a.lever("drain [--host NAME] (--for DURATION | --until TIME)", "Let the workers of a host claim nothing for a while", &o, func(c *cobra.Command, t storeuri.Target) error {
		return lever.Drain(c.Context(), t, o, a.shown)
	})
	a.leverFlags(c, &o, "all that the roster has workers of on the host")
	a.lasting(c, &o, "holders there stop when they read the order")
	option(a, c.Flags(), &o.Target, "host", "NAME", "the host, as leasectl inspect workers shows it (default: this one)", nonEmpty)
	c.Flags().BoolVar(&o.Yes, "yes", false, "don't ask")
	lasts := c.PreRun
	c.PreRun = func(c *cobra.Command, args []string) {
		lasts(c, args)
		if o.Target != "" {
			return
		}
		name, err := os.Hostname()
		if err != nil {
			a.bad("--host is missing, and this host has no name: %w", err)
		}
		o.Target = name
	}
	return c
}

func (a *app) releaseCommand() *cobra.Command {
	o, force := lever.Options{}, false
	c := a.lever("release --worker-type TYPE", "Ask the holder to give up its lease", &o, func(c *cobra.Command, t storeuri.Target) error {
		if force {
			return lever.Force(c.Context(), t, o, override.Screen{Plan: a.told(), Result: a.shown})
		}
		return lever.Release(c.Context(), t, o, a.shown)
	})
	a.leverFlags(c, &o, "")
	option(a, c.Flags(), &o.Target, "claim", "ID", "the claim of the lease, as inspect slots --output json shows it (default: the one in force)", nonEmpty)
	c.Flags().BoolVar(&force, "force", false, "end the lease by an override, whether its holder stops or not")
	c.Flags().BoolVar(&o.Yes, "yes", false, "with --force: show what it risks, but don't ask")
	c.PreRun = func(c *cobra.Command, _ []string) {
		if o.Yes && !force {
			a.bad("--yes: goes with --force only: nothing else is asked")
		}
		if claim, ok := given(c.Flags(), "claim"); ok && force {
			a.bad("--claim %q: goes without --force, which ends whatever is in force", claim)
		}
		if o.JSON && force {
			a.bad("--output json: goes without --force")
		}
	}
	return c
}
