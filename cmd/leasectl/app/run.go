package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/sdnotify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{level: zapcore.InfoLevel, format: "text"}
	c := &cobra.Command{
		Use:     "run --worker-type TYPE (--every DURATION | --cron SPEC) [flags] -- COMMAND [ARG…]",
		Short:   "Run a command in each slot that this worker holds",
		Long:    runHelp,
		Example: runExamples,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, f, args)
		},
		ValidArgsFunction: completeFiles,
	}
	c.Flags().SetInterspersed(false)
	a.runFlags(c, f)
	return c
}

// run checks everything that can be checked before the first slot, and then leases
// until a signal ends it or, with --once, the command has ended.
func (a *app) run(c *cobra.Command, f *runFlags, args []string) error {
	t := a.target(c)
	timing := a.runTiming(f, c.Flags())
	switch {
	case len(args) == 0:
		a.bad("no command: put it after --")
	case c.ArgsLenAtDash() != 0:
		a.bad("unexpected argument %q: put the command after --", secret.Shown(args[0]))
	}
	if err := a.usage(c); err != nil {
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Interrupted && !f.once {
			return nil
		}
		return err
	}
	if err := guardable(args[0]); err != nil {
		return advice.ForCommand(args[0], err)
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	log := a.runLog(f, t, timing, func() { stop(interrupt.ErrUnread) })
	defer log.Close()
	command := a.supervised(f, args, t, log)
	over, err := a.outlook(ctx, f, t, timing, log, &command)
	if err != nil {
		return err
	}
	defer over()
	var isNew bool
	opening, opened := context.WithCancel(ctx)
	if f.once {
		opening, opened = context.WithTimeout(ctx, f.timeout)
	}
	ledger, err := openPatiently(opening, log.Unopened, func(ctx context.Context) (l store.Ledger, err error) {
		l, isNew, err = t.OpenToLease(ctx)
		return l, err
	})
	opened()
	if err != nil && unresolved(err) && ctx.Err() != nil {
		log.Stopping(context.Cause(ctx))
		log.Stopped()
		if f.once {
			return exit.Quiet(exit.Interrupted)
		}
		return nil
	}
	if err != nil {
		return advice.ForStore(t, err)
	}
	if isNew {
		log.Creating(t.Place())
	}
	unfit, err := a.lease(ctx, f, ledger, timing, command)
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Survivors {
		unfit = nil // That processes are left matters more.
	}
	err = exit.Join(advice.ForStore(t, unfit), err, advice.ForStore(t, storeuri.Close(ctx, ledger)))
	if (err == nil || f.once) && errors.Is(context.Cause(ctx), interrupt.ErrUnread) {
		err = exit.With(exit.Unread, interrupt.ErrUnread)
	}
	return err
}

// guardable reports why a command can't run under a guard.
func guardable(name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return err
	}
	if !guard.Supported {
		return guard.ErrUnsupported
	}
	// Where there are no subreapers, the guard's promise is weaker, as documented.
	if err := guard.BecomeSubreaper(); err != nil && !errors.Is(err, guard.ErrUnsupported) {
		return err
	}
	return nil
}

// runLog is the log of run on the standard error. unread is called when nobody reads it any
// more.
func (a *app) runLog(f *runFlags, t storeuri.Target, timing workerlease.Timing, unread func()) *runlog.Log {
	if f.verbose {
		f.level = zapcore.DebugLevel
	}
	var to io.Writer = heard{a.stderr, unread}
	if f.format == "json" {
		to = display.JSONWriter{To: to}
	} else {
		to = display.Writer{To: to}
	}
	return runlog.New(runlog.Options{
		To: secret.Writer{To: to, Secrets: a.secrets, Plain: a.plain}, Store: t, JSON: f.format == "json", Level: f.level, Once: f.once,
		Worker: workerlease.Worker{WorkerType: timing.Options.WorkerType, InstanceID: timing.Options.InstanceID},
	})
}

// lease leases until ctx ends or, with --once, until the command has ended. unfit is why the store can't be
// used.
func (a *app) lease(ctx context.Context, f *runFlags, ledger store.Ledger, timing workerlease.Timing, command supervise.Command) (unfit, err error) {
	if !f.once {
		return supervise.Run(ctx, ledger, timing, command)
	}
	code, unfit, err := supervise.Once(ctx, ledger, timing, command, f.timeout)
	switch {
	case errors.Is(err, workerlease.ErrNotClaimed):
		err = exit.Quiet(f.conflict) // It is logged.
	case err == nil && unfit == nil:
		err = exit.Quiet(code)
	}
	return unfit, err
}

// supervised is the command that args are, for a lease in a store. With --tether the
// standard input is no input of it.
func (a *app) supervised(f *runFlags, args []string, t storeuri.Target, log *runlog.Log) supervise.Command {
	c := supervise.Command{
		Name: args[0], Args: args[1:], Env: sdnotify.Without(t.Environ(a.env)), Stdout: a.stdout, Stderr: a.stderr,
		Roster: !f.noRoster,
		Grace:  f.stopGrace, Urgent: a.signals.Urgent, Log: log,
	}
	if f.tether {
		c.Urgent = a.untilUntethered()
	} else if in, ok := a.stdin.(*os.File); ok {
		c.Stdin = in
	}
	return c
}

// untilUntethered is closed at the second signal, or when the standard input ends:
// then the process that started this one has gone.
func (a *app) untilUntethered() <-chan struct{} {
	urgent, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, a.stdin)
	}()
	go func() {
		defer close(urgent)
		select {
		case <-gone:
		case <-a.signals.Urgent:
		}
	}()
	return urgent
}
