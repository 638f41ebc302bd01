package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
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
  - Ctrl-C (SIGINT), SIGTERM and SIGHUP stop the command (SIGTERM, and SIGKILL
    after --stop-grace), then release the lease, then end leasectl with code 0. A
    second signal kills the command at once.
  - A store that can't be reached is tried again for ever.
  - Its standard output and error are those of leasectl, and so is its standard
    input, unless that is a terminal: then it has none.

The command's environment is that of leasectl, without LEASECTL_STORE (which may
hold a password), and with

  LEASE_WORKER_TYPE   the worker type
  LEASE_INSTANCE_ID   the label of this worker
  LEASE_GROUP         its group, or empty
  LEASE_TOKEN         the fencing token: pass it along with every write
  LEASE_SLOT_START    start of the slot: RFC 3339, UTC, milliseconds; store time
  LEASE_SLOT_END      its end
  LEASE_EXPIRES_AT    when the lease ends; work is stopped a little earlier`

// runFlags are the options of run.
type runFlags struct {
	scheduleFlags

	workerType, instanceID, group string
	priority                      int
	tieBreak                      priority.TieBreak
	joinMidSlot                   bool
	lead, step, margin, stopGrace time.Duration
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
	}
	c.Flags().SetInterspersed(false)
	a.runFlags(c, f)
	return c
}

func (a *app) runFlags(c *cobra.Command, f *runFlags) {
	flags := c.Flags()
	option(a, flags, &f.workerType, "worker-type", "TYPE", "what is competed for (required)", workerType)
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock", interval)
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	option(a, flags, &f.priority, "priority", "0-7", "0 is the highest (default 0)", number(priority.Highest, priority.Lowest, ", 0 being the highest"))
	option(a, flags, &f.instanceID, "instance-id", "LABEL", "label of this worker (default host-pid-xxxx)", label)
	option(a, flags, &f.group, "group", "NAME", "share the lease with all workers of the group", label)
	option(a, flags, &f.tieBreak, "tie-break", "sticky|rotate|random", "order of workers of one priority (default sticky)", priority.ParseTieBreak)
	flags.BoolVar(&f.joinMidSlot, "join-mid-slot", false, "claim what is left of the slot in which the worker starts, if nobody has it")
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s)", duration(0, priority.MaxLead))
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", duration(0, priority.MaxLead))
	option(a, flags, &f.margin, "margin", "DURATION", "how long before the end of the lease work stops (default slot/100, 10ms to 250ms)", duration(10*time.Millisecond, time.Hour))
	option(a, flags, &f.stopGrace, "stop-grace", "DURATION", "time between SIGTERM and SIGKILL (default a quarter of the lease, at most 10s)", duration(0, time.Hour))
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
	j := a.newJournal(f.format, f.level)
	return errors.Join(
		a.lease(ctx, ledger, o, j, &job{
			name: args[0], args: args[1:], env: a.env, grace: f.stopGrace, journal: j, urgent: a.urgently(f.tether),
		}),
		storeFailed(t, closeLedger(ctx, ledger)),
	)
}

// options makes the worker's options of the flags, and notes what is wrong with
// them.
func (a *app) options(c *cobra.Command, f *runFlags) workerlease.Options {
	schedule := a.schedule(f.scheduleFlags, c.Flags().Changed)
	if !c.Flags().Changed("worker-type") {
		a.bad("--worker-type is missing: name what is competed for")
	}
	if schedule != nil {
		shortest := shortestSlot(schedule)
		if f.margin >= shortest/2 {
			a.bad("--margin %v: must be less than half of the shortest slot (%v)", f.margin, shortest)
		}
		if f.stopGrace >= shortest/2 {
			a.bad("--stop-grace %v: must be less than half of the shortest slot (%v)", f.stopGrace, shortest)
		}
	}
	return workerlease.Options{
		WorkerType: f.workerType, InstanceID: f.instanceID, Group: f.group, Priority: f.priority,
		TieBreak: f.tieBreak, Schedule: schedule, JoinMidSlot: f.joinMidSlot,
		Lead: f.lead, Step: f.step, Margin: f.margin,
	}
}

// preflight bounds how long run looks at the store before it begins. A store
// that is down doesn't keep it from beginning.
const preflight = 5 * time.Second

// openToLease opens the ledger for a worker. A file that isn't there is not
// created: a mistyped path would be a ledger of its own, and two workers hold
// the lease. What can't get better by waiting is an error.
func (t target) openToLease(ctx context.Context) (store.Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, preflight)
	defer cancel()
	if t.scheme == "sqlite" {
		looker, err := t.open(ctx, true)
		if err != nil {
			return nil, err
		}
		if err := looker.Close(ctx); err != nil {
			return nil, err
		}
	}
	ledger, err := t.open(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, ask := range []func() error{
		func() error { _, err := ledger.Now(ctx); return err },
		func() error { _, err := ledger.WorkerTypes(ctx); return err },
	} {
		err := ask()
		for _, lasting := range []error{store.ErrRefused, store.ErrDenied, store.ErrMissing} {
			if errors.Is(err, lasting) {
				return nil, errors.Join(err, closeLedger(ctx, ledger))
			}
		}
	}
	return ledger, nil
}

// closeLedger closes a ledger also when the context has ended.
func closeLedger(ctx context.Context, l store.Ledger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return l.Close(ctx)
}

// stopTime is how long stopping may take on top of the command's grace: reading
// and appending to the ledger.
const stopTime = 10 * time.Second

// lease takes part in leasing until ctx ends.
func (a *app) lease(ctx context.Context, ledger store.Ledger, o workerlease.Options, j journal, work *job) error {
	out, err := fileOf(a.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	errs, err := fileOf(a.stderr)
	if err != nil {
		return err
	}
	defer errs.close()
	work.stdout, work.stderr = out.file, errs.file
	if in, ok := a.stdin.(*os.File); ok && work.urgent == a.signals.urgent {
		work.stdin = in
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: j})
	worker, err := client.StartLeasing(context.WithoutCancel(ctx), o, workerlease.Callbacks{
		LeaseAllocated: work.run,
		Error: func(err error) {
			// The journal is told of everything else by events.
			if errors.Is(err, workerlease.ErrPanicked) {
				j.trouble("internal error", err)
			}
		},
	})
	if err != nil {
		return badUsage("", err)
	}
	j.began(worker.Status(), o)
	select {
	case <-ctx.Done():
	case <-work.urgent:
	}
	j.stopping(context.Cause(ctx))
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.longestGrace()+stopTime)
	defer cancel()
	if err := worker.StopLeasing(limit); err != nil {
		return fmt.Errorf("%w; it ends by itself", err)
	}
	j.stopped()
	return nil
}
