package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

const runHelp = `Run a command in each slot that this worker holds.

The command runs under a guard, which makes sure that neither it nor any of its
descendants outlives the lease: not when they ignore SIGTERM, not when they
detach, and not when leasectl itself is killed or stopped.

  - It gets SIGTERM --stop-grace before the last safe moment of the lease, and
    SIGKILL at it (less the time that killing takes: 1/50 of the lease, at most
    100ms).
  - When it ends by itself, it is not started again in that slot, and the lease
    is kept to the end of the slot: so the job runs once per slot.
  - --failover-within and --continuous extend leases. The end moves then, and
    SIGTERM and SIGKILL with it: see below.
  - Ctrl-C (SIGINT), SIGTERM and SIGHUP stop the command (SIGTERM, and SIGKILL
    after --stop-grace), then release the lease, then end leasectl with code 0. A
    second signal kills the command at once. A signal that was ignored when
    leasectl was started (SIGHUP by nohup, SIGINT by a script's &) stays ignored.
  - A store that can't be reached is tried again for ever.
  - Its standard output and error are those of leasectl, and so is its standard
    input, unless that is a terminal: then it has none.

Without more, a slot is lost when the worker that holds it dies. With
--failover-within 30s another takes over what is left of it, 30s after the death at
most (towards the end of a slot up to --lead later). For that the lease is taken
for a part of the slot at a time, and extended while the worker lives: with 5m slots
and 30s the store is written to 14 times in a slot instead of once, and each
other worker reads it as often. "leasectl plan" tells what that costs.

With --continuous the worker that wins the next slot, too, goes on without a break:
the command runs on over the boundary, under the same token. That is for daemons.
Others still compete for each slot, and one of a higher --priority takes over at
its start; unless all have --no-failback, which leaves the lease where it is for as
long as its worker lives.

Where leases are extended, their end moves, and with it that of the command:

  - As long as an extension may yet come, SIGTERM waits until three quarters of the
    time for it have passed. In a part of a slot that is --failover-within/16
    before the last safe moment; before a slot that --continuous may win it is
    --lead/4, and less for a --priority whose turn comes late. A command is told
    so long before the end if the store can't be reached, or another has won; if
    leases are extended in time it isn't disturbed.
  - Where nothing is to be extended any more, at the end of a slot without
    --continuous, it comes --stop-grace before, as always.
  - A command that was told to end, and whose lease is extended after all, is
    started again at once.
  - With --continuous, a command that ended by itself is started again when the
    next slot begins.
  - When leasectl is stopped (SIGSTOP), the command is killed where the lease ended
    when it was extended last.

The command's environment is that of leasectl, without LEASECTL_STORE (which may
hold a password; nor, for a store in Cosmos DB, COSMOS_KEY and
COSMOS_CONNECTION_STRING), and with

  LEASE_WORKER_TYPE   the worker type
  LEASE_INSTANCE_ID   the label of this worker
  LEASE_GROUP         its group, or empty
  LEASE_TOKEN         the fencing token: pass it along with every write
  LEASE_SLOT_START    start of the slot: RFC 3339, UTC, milliseconds; store time
  LEASE_SLOT_END      its end
  LEASE_EXPIRES_AT    when the lease ends; work is stopped a little earlier

These are as of when it is started: with --failover-within the lease ends later
each time that it is extended, and with --continuous other slots follow.`

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
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon others take over a slot whose worker dies: 80ms to half a slot; costs about 4/3 slot/DURATION writes, and as many reads by each other, per slot; not with --group (default: the slot is lost)", duration(leastFailover, slots.MaxInterval/2))
	flags.BoolVar(&f.continuous, "continuous", false, "go on from slot to slot while this worker wins them, without stopping the command; not with --group")
	flags.BoolVar(&f.noFailback, "no-failback", false, "with --continuous: keep the lease while this worker lives, even from higher priorities; give it to all workers of the type")
	flags.BoolVar(&f.joinMidSlot, "join-mid-slot", false, "claim what is left of the slot in which the worker starts, if nobody has it")
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", duration(0, priority.MaxLead))
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", duration(0, priority.MaxLead))
	option(a, flags, &f.margin, "margin", "DURATION", "how long before the end of the lease work stops (default slot/100, at most --failover-within/20 and 250ms, at least 10ms)", duration(10*time.Millisecond, time.Hour))
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
		return commandFailed(args[0], err)
	}
	if !canGuard {
		return commandFailed(args[0], guard.ErrUnsupported)
	}
	// Where there are no subreapers, the guard's promise is weaker, as documented.
	if err := guard.BecomeSubreaper(); err != nil && !errors.Is(err, guard.ErrUnsupported) {
		return commandFailed(args[0], err)
	}
	ctx := c.Context()
	ledger, err := t.openToLease(ctx)
	if err != nil {
		return storeFailed(t, err)
	}
	if f.verbose {
		f.level = zapcore.DebugLevel
	}
	env := a.env
	if t.scheme == "cosmos" {
		env = withoutKeys(env)
	}
	j := a.newJournal(f.format, f.level)
	return errors.Join(
		a.lease(ctx, t, ledger, o, j, &job{
			pacing: pacingOf(o, f.stopGrace), name: args[0], args: args[1:], env: env, journal: j, urgent: a.urgently(f.tether),
		}),
		storeFailed(t, closeLedger(ctx, ledger)),
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
	a.checkExtension(f, flags, shortest)
	return workerlease.Options{
		WorkerType: f.workerType, InstanceID: f.instanceID, Group: f.group, Priority: f.priority,
		TieBreak: f.tieBreak, Schedule: schedule, JoinMidSlot: f.joinMidSlot,
		FailoverWithin: f.failover, Continuous: f.continuous, NoFailback: f.noFailback,
		Lead: f.lead, Step: f.step, Margin: f.margin,
	}
}
