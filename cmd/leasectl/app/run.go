package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/sdnotify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{level: zapcore.InfoLevel, format: "text"}
	c := &cobra.Command{
		Use:   "run --worker-type TYPE (--every DURATION | --cron SPEC) [flags] -- COMMAND [ARG…]",
		Short: "Run a command in each slot that this worker holds",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, f, args)
		},
		ValidArgsFunction: completeFiles,
	}
	c.Flags().SetInterspersed(false)
	a.runFlags(c.Flags(), f)
	return needsStore(c)
}

// run checks everything that can be checked before the first slot, and then leases
// until a signal ends it or, with --once, the command has ended.
func (a *app) run(c *cobra.Command, f *runFlags, args []string) error {
	t := a.target(c)
	f.options.Work = workOf(args)
	timing := a.runTiming(f, c.Flags())
	targets := a.targets(c.Context(), f.onEvents)
	a.checkOutput(f.output)
	a.checkPage(c, f)
	switch {
	case len(args) == 0:
		a.bad("no command: put it after --")
	case c.ArgsLenAtDash() != 0:
		a.bad("unexpected argument %q: put the command after --", secret.Shown(args[0]))
	}
	if err := a.usage(c); err != nil {
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Interrupted {
			return f.interrupted()
		}
		return err
	}
	if err := cmp.Or(found(args[0]), guardable()); err != nil {
		return advice.ForCommand(args[0], err)
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	a.own = &hurried{Writer: a.stderr} // The end of a worker must not wait for its reader.
	worker := event.Worker{WorkerType: timing.Options.WorkerType, InstanceID: timing.Options.InstanceID}
	log := a.runLog(f, t, worker, func() { stop(interrupt.ErrUnread) })
	defer log.Close()
	command := a.supervised(f, args, t, log)
	signals, unheard := interrupt.Passed()
	defer unheard()
	command.Signals = signals
	out, err := a.outlook(ctx, f, log, t, listen.Options{Worker: worker, Schedule: timing.Options.Schedule})
	if err != nil {
		return err
	}
	defer out.close()
	command.Observer, command.Began = out.observer, out.show
	keeping(f.output, log, &command)
	defer a.notifying(targets, log, out, worker.WorkerType, &command)()
	began := time.Now()
	ledger, err := a.openToLease(ctx, f, t, log)
	if ledger == nil {
		return err
	}
	unfit, err := a.lease(ctx, f, ledger, timing, command, began)
	return a.ended(ctx, f, t, ledger, unfit, err)
}

// workOf names a command for other workers: by its file, and by a hash that shows no argument.
func workOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	name := strings.ToValidUTF8(filepath.Base(args[0]), "")
	sum := sha256.Sum256([]byte(strings.Join(args, "\x00")))
	return fmt.Sprintf("%s %x", display.Clip(display.Line(name), 64), sum[:4])
}

// openToLease opens the ledger of a store. Without one all is over: by the error, or because ctx has ended.
func (a *app) openToLease(ctx context.Context, f *runFlags, t storeuri.Target, log *runlog.Log) (store.Ledger, error) {
	ledger, err := f.opened(ctx, t, log)
	switch {
	case err != nil && ctx.Err() != nil && (unresolved(err) || errors.Is(err, ctx.Err())): // The end came first.
		log.Stopping(context.Cause(ctx))
		log.Stopped()
		return nil, f.interrupted()
	case err != nil:
		return nil, advice.ForStore(t, err)
	}
	return ledger, nil
}

// ended closes the ledger after leasing, and returns all that went wrong. unfit is why the store can't be used.
func (a *app) ended(ctx context.Context, f *runFlags, t storeuri.Target, ledger store.Ledger, unfit, err error) error {
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Survivors {
		unfit = nil // That processes are left matters more.
	}
	err = exit.Join(advice.ForStore(t, unfit), err, advice.ForStore(t, storeuri.Close(ctx, ledger)))
	if (err == nil || f.once) && errors.Is(context.Cause(ctx), interrupt.ErrUnread) {
		err = exit.With(exit.Unread, interrupt.ErrUnread)
	}
	return err
}

// interrupted is the end by a signal before there was a ledger.
func (f *runFlags) interrupted() error {
	if f.once {
		return exit.Quiet(exit.Interrupted)
	}
	return nil
}

// opened opens the ledger of a store, and says if it is new.
func (f *runFlags) opened(ctx context.Context, t storeuri.Target, log *runlog.Log) (store.Ledger, error) {
	if f.once {
		limited, cancel := context.WithTimeout(ctx, cmp.Or(f.timeout, defaultTimeout))
		defer cancel()
		ctx = limited
	}
	isNew := false
	ledger, err := openPatiently(ctx, log.Unopened, func(ctx context.Context) (l store.Ledger, err error) {
		l, isNew, err = t.OpenToLease(ctx)
		return l, err
	})
	if isNew && err == nil {
		log.Creating(t)
	}
	return ledger, err
}

// found reports why a command can't be found.
func found(name string) error {
	_, err := exec.LookPath(name)
	return err
}

// guardable reports why no command can run under a guard.
func guardable() error {
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
func (a *app) runLog(f *runFlags, t storeuri.Target, worker event.Worker, unread func()) *runlog.Log {
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
		Worker: worker,
	})
}

// lease leases until ctx ends or, with --once, until the command has ended. The time to open the store, since it
// began, counts for --timeout. unfit is why the store can't be used.
func (a *app) lease(ctx context.Context, f *runFlags, ledger store.Ledger, timing workerlease.Timing, command supervise.Command, began time.Time) (unfit, err error) {
	if !f.once {
		return supervise.Run(ctx, ledger, timing, command)
	}
	patience := supervise.Patience{Since: began, Store: cmp.Or(f.timeout, defaultTimeout), Done: f.timeout}
	code, unfit, err := supervise.Once(ctx, ledger, timing, command, patience)
	switch {
	case errors.Is(err, workerlease.ErrNotClaimed):
		err = exit.Quiet(f.unclaimed(err)) // It is logged.
	case err == nil && unfit == nil:
		err = exit.Quiet(code)
	}
	return unfit, err
}

// unclaimed is the exit code of --once for a slot that can't be had.
func (f *runFlags) unclaimed(err error) int {
	n, _ := errors.AsType[*workerlease.NotClaimed](err)
	switch {
	case n == nil:
		return exit.Missed // Too little of it was left.
	case n.Why == workerlease.AlreadyDone:
		return exit.OK
	case n.Why == workerlease.HeldByAnother:
		return f.conflict
	case n.Why == workerlease.TooSoon:
		return exit.TooSoon
	case n.Why == workerlease.UsedUp:
		return exit.GivenUp
	}
	return exit.Missed
}

// supervised is the command that args are, for a lease in a store. With --tether the
// standard input is no input of it.
func (a *app) supervised(f *runFlags, args []string, t storeuri.Target, log *runlog.Log) supervise.Command {
	c := supervise.Command{
		Name: args[0], Args: args[1:], Env: sdnotify.Without(t.Environ(a.env)), Stdout: a.stdout, Stderr: a.stderr,
		Roster: f.keepsRoster(t.Billed()),
		OnExit: f.onExit, Grace: f.stopGrace, Urgent: a.signals.Urgent, Log: log,
	}
	if f.options.DrainTimeout > 0 {
		c.Hurry, c.Urgent = a.signals.Urgent, a.signals.Third()
	}
	if f.tether {
		c.Urgent = a.untilUntethered(c.Urgent)
	} else if in, ok := a.stdin.(*os.File); ok {
		c.Stdin = in
	}
	return c
}

// untilUntethered is closed with signals, or when the standard input ends: then the process that started this one has gone.
func (a *app) untilUntethered(signals <-chan struct{}) <-chan struct{} {
	urgent, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, a.stdin)
	}()
	go func() {
		defer close(urgent)
		select {
		case <-gone:
		case <-signals:
		}
	}()
	return urgent
}
