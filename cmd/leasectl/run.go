package main

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// runFlags are the options of run.
type runFlags struct {
	scheduleFlags

	workerType, instanceID, group string
	priority                      int
	tieBreak                      priority.TieBreak
	joinMidSlot                   bool
	lead, step, margin, stopGrace time.Duration
	failover                      time.Duration
	continuous, noFailback        bool
	once, runMissed               bool
	maxAttempts                   int
	level                         zapcore.Level
	verbose                       bool
	format                        string
	tether                        bool
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{level: zapcore.InfoLevel, format: "text"}
	c := &cobra.Command{
		Use:     "run --worker-type TYPE (--every DURATION | --cron SPEC [--zone ZONE]) [flags] -- COMMAND [ARG…]",
		Short:   "Run a command in each slot that this worker holds",
		Long:    runHelp,
		Example: "  leasectl run --worker-type invoice-export --every 5m -- ./export.sh\n  leasectl run --worker-type report --cron '0 2 * * *' --zone Europe/Berlin -- ./report.sh",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, f, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	c.Flags().SetInterspersed(false)
	a.runFlags(c, f)
	return c
}

func (a *app) runFlags(c *cobra.Command, f *runFlags) {
	flags := c.Flags()
	option(a, flags, &f.workerType, "worker-type", "TYPE", "what is competed for (required)", workerType)
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock", duration(-1<<63, 1<<63-1))
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	option(a, flags, &f.priority, "priority", "0-7", "0 is the highest (default 0)", number(priority.Highest, priority.Lowest, ", 0 being the highest"))
	option(a, flags, &f.instanceID, "instance-id", "LABEL", "label of this worker (default host-pid-xxxx)", label)
	option(a, flags, &f.group, "group", "NAME", "share the lease with all workers of the group", label)
	option(a, flags, &f.tieBreak, "tie-break", "sticky|rotate|random", "order of workers of one priority (default sticky)", tieBreak)
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon others take over a slot whose worker dies: 80ms to half a slot; costs about 4/3 slot/DURATION writes, and as many reads by each other, per slot; not with --group (default: the slot is lost; with --once-per-slot a quarter of the slot, at most 1m, at least 8 × --margin)", duration(leastFailover, slots.MaxInterval/2))
	flags.BoolVar(&f.continuous, "continuous", false, "go on from slot to slot while this worker wins them, without stopping the command; not with --group")
	flags.BoolVar(&f.noFailback, "no-failback", false, "with --continuous: keep the lease while this worker lives, even from higher priorities; give it to all workers of the type")
	flags.BoolVar(&f.once, "once-per-slot", false, "the command is a job of each slot: it is done when it exits with 0, and else tried again, by others first; not with --group or --continuous")
	option(a, flags, &f.maxAttempts, "max-attempts", "N", "with --once-per-slot: how often a slot is tried at most, by all workers together; give it to all workers of the type (default as often as its time allows)", number(1, store.MaxAttempt, ""))
	flags.BoolVar(&f.runMissed, "run-missed", false, "with --once-per-slot: make up for the slot before, if nobody did it, once")
	flags.BoolVar(&f.joinMidSlot, "join-mid-slot", false, "claim what is left of the slot in which the worker starts, if nobody has it")
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", duration(0, priority.MaxLead))
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", duration(0, priority.MaxLead))
	option(a, flags, &f.margin, "margin", "DURATION", "how long before the end of the lease work stops (default slot/100, at most --failover-within/20 and 250ms, at least 10ms)", duration(leastMargin, time.Hour))
	option(a, flags, &f.stopGrace, "stop-grace", "DURATION", "time between SIGTERM and SIGKILL (default a quarter of the lease, or of --failover-within, at most 10s)", duration(0, time.Hour))
	option(a, flags, &f.level, "log-level", "debug|info|warn|error", "what to log on stderr (default info)", logLevel)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "same as --log-level debug")
	option(a, flags, &f.format, "log-format", "text|json", "how to log (default text)", oneOf("text", "json"))
	flags.BoolVar(&f.tether, "tether", false, "end at once when the standard input ends")
	_ = flags.MarkHidden("tether") // of the demo
}

// logLevel reads --log-level.
func logLevel(s string) (zapcore.Level, error) {
	word, err := oneOf("debug", "info", "warn", "error")(s)
	if err != nil {
		return 0, err
	}
	return zapcore.ParseLevel(word)
}

// run checks everything that can be checked before the first slot, and then
// leases until it is told to end.
func (a *app) run(c *cobra.Command, f *runFlags, args []string) error {
	t := a.target(c)
	o := a.options(c, f)
	switch {
	case len(args) == 0:
		a.bad("no command: put it behind --")
	case c.ArgsLenAtDash() != 0:
		a.bad("unexpected argument %q: put the command behind --", args[0])
	}
	if err := a.usage(c); err != nil {
		return err
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return advice.ForCommand(args[0], err)
	}
	if !guard.Supported {
		return advice.ForCommand(args[0], guard.ErrUnsupported)
	}
	// Where there are no subreapers, the guard's promise is weaker, as documented.
	if err := guard.BecomeSubreaper(); err != nil && !errors.Is(err, guard.ErrUnsupported) {
		return advice.ForCommand(args[0], err)
	}
	ctx := c.Context()
	opening, cancel := context.WithTimeout(ctx, preflight)
	ledger, isNew, err := t.OpenToLease(opening)
	cancel()
	if err != nil {
		return advice.ForStore(t, err)
	}
	if f.verbose {
		f.level = zapcore.DebugLevel
	}
	j := a.newJournal(f.format, f.level)
	if isNew {
		j.say(zapcore.InfoLevel, "creating the ledger "+t.Place()+"; all workers of the type must use this file")
	}
	return errors.Join(
		a.lease(ctx, t, ledger, o, j, &job{
			pacing: pacingOf(o, f.stopGrace), name: args[0], args: args[1:], env: t.Environ(a.env), journal: j, urgent: a.urgently(f.tether),
		}),
		advice.ForStore(t, storeuri.Close(ctx, ledger)),
	)
}

// options makes the worker's options of the flags, and notes what is wrong with
// them.
func (a *app) options(c *cobra.Command, f *runFlags) workerlease.Options {
	flags := c.Flags()
	schedule, shortest := a.schedule(f.scheduleFlags, flags)
	if !flags.Changed("worker-type") {
		a.bad("--worker-type is missing: name what is competed for")
	}
	for _, o := range []struct {
		name string
		d    time.Duration
	}{{"margin", f.margin}, {"stop-grace", f.stopGrace}} {
		if text, ok := given(flags, o.name); ok && shortest > 0 && o.d >= shortest/2 {
			a.bad("--%s %q: must be less than half of the shortest slot (%v)", o.name, text, shortest)
		}
	}
	a.checkOnce(f, flags, shortest)
	f.failover = failoverOf(f, flags, shortest)
	a.checkExtension(f, flags, shortest)
	var once *workerlease.Job
	if f.once {
		once = &workerlease.Job{MaxAttempts: f.maxAttempts, RunMissed: f.runMissed}
	}
	return workerlease.Options{
		WorkerType: f.workerType, InstanceID: f.instanceID, Group: f.group, Priority: f.priority,
		TieBreak: f.tieBreak, Schedule: schedule, JoinMidSlot: f.joinMidSlot,
		FailoverWithin: f.failover, Continuous: f.continuous, NoFailback: f.noFailback,
		Job: once, Lead: f.lead, Step: f.step, Margin: f.margin,
	}
}
