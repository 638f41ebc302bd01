// Package override ends what is in force in a ledger, as an operator says, after it has shown
// what that risks.
package override

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/confirm"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// Options of Run.
type Options struct {
	WorkerType, InstanceID, Reason string
	Seq                            int64
	DoneUntil                      time.Time // zero: as package workerlease decides
	Yes                            bool      // don't ask
	// Ask asks the operator a question; nil if there is nobody to ask.
	Ask     func(question string) (string, error)
	Timeout time.Duration // of what comes before the question, and of what comes after it
}

// Screen is where is shown what an override would end (Plan, next to the question), and what
// came of it (Result).
type Screen struct{ Plan, Result io.Writer }

// Run shows what an override would end, asks, and writes it.
func Run(ctx context.Context, t storeuri.Target, o Options, s Screen) (err error) {
	opening, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ledger, isNew, err := t.OpenToLease(opening)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	if isNew {
		return advice.ForStore(t, fmt.Errorf("%s: %w", t.Place(), store.ErrMissing))
	}
	return inLedger(ctx, t, ledger, o, s)
}

func inLedger(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	what := operate.OverrideOptions{
		WorkerType: o.WorkerType, Seq: o.Seq, InstanceID: o.InstanceID, Reason: o.Reason, DoneUntil: o.DoneUntil,
	}
	limited := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, o.Timeout) }
	looking, cancel := limited()
	defer cancel()
	plan, err := operate.On(l).PlanOverride(looking, what)
	if err != nil {
		if errors.Is(err, operate.ErrHeadMoved) && plan.Head.Seq == 0 {
			err = cmp.Or(advice.ForStore(t, inspect.CheckType(looking, l, o.WorkerType)), noRecords(t, o))
		}
		return failure(t, o, err)
	}
	if _, err := io.WriteString(s.Plan, text(plan)); err != nil && !o.Yes {
		return exit.With(exit.Failure, fmt.Errorf("what would be overridden can't be shown, so nothing was written: %w", err))
	}
	if !o.Yes {
		if err := confirm.Ask(o.Ask, fmt.Sprintf("override record %d?", o.Seq), "nothing was written"); err != nil {
			return err
		}
	}
	writing, cancel := limited()
	defer cancel()
	r, err := operate.On(l).Override(writing, what)
	if err != nil {
		return failure(t, o, err)
	}
	wrote := fmt.Sprintf("wrote record %d: %q has overridden record %d; slots are free from %s on%s",
		r.Seq, r.InstanceID, o.Seq, store.Format(r.WindowStart), done(r)+stays(r))
	if _, err = fmt.Fprintln(s.Result, wrote); err != nil {
		return exit.With(exit.Failure, fmt.Errorf("%s; but the output can't be written: %w", wrote, err))
	}
	again, cancel := limited()
	defer cancel()
	return lookAgain(again, t, l, plan, r, s)
}

// noRecords is the error of an override where workers go by no record.
func noRecords(t storeuri.Target, o Options) error {
	e := exit.With(exit.Failure, fmt.Errorf("worker type %q has no record that workers go by, so there is nothing to override", o.WorkerType))
	e.Try = advice.Command(t, "leasectl inspect slots --worker-type "+o.WorkerType)
	return e
}

// lookAgain shows what workers go by now, if that isn't the override: what stood above a free
// key, or what has been appended meanwhile.
func lookAgain(ctx context.Context, t storeuri.Target, l store.Ledger, before operate.OverridePlan, r store.Record, s Screen) error {
	p, err := operate.On(l).PlanOverride(ctx, operate.OverrideOptions{WorkerType: r.WorkerType, Seq: r.Seq})
	if !errors.Is(err, operate.ErrHeadMoved) || p.Head.Seq <= r.Seq {
		return nil // It is written, whatever keeps it from being looked at.
	}
	woken := slices.ContainsFunc(before.Unreachable, func(u store.Record) bool { return u.Seq == p.Head.Seq })
	line := fmt.Sprintf("workers go by record %d now: %s\n", p.Head.Seq, described(p.Head, p.HeadDefect))
	if woken && p.HeadDefect == nil { // Workers supersede poison by themselves.
		line += "try: " + advice.Command(t, fmt.Sprintf("leasectl override --worker-type %s --seq %d", r.WorkerType, p.Head.Seq)) + "\n"
	}
	if _, err = io.WriteString(s.Result, display.Text(line)); err != nil {
		return exit.With(exit.Failure, fmt.Errorf("record %d is written, but the output can't be: %w", r.Seq, err))
	}
	return nil
}

// failure is an error of package workerlease with its exit code, and what to try.
func failure(t storeuri.Target, o Options, err error) error {
	_, known := errors.AsType[*exit.Error](err)
	switch {
	case known:
		return err
	case errors.Is(err, operate.ErrLedgerFull):
		return exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
	case errors.Is(err, operate.ErrHeadMoved):
		e := exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
		e.Try = advice.Command(t, "leasectl inspect slots --worker-type "+o.WorkerType)
		return e
	case errors.Is(err, operate.ErrOverrideUnknown):
		e := exit.With(exit.Unreachable, err)
		e.Try = advice.Command(t, "leasectl inspect slots --worker-type "+o.WorkerType)
		return e
	case errors.Is(err, operate.ErrTimeUnknown):
		return exit.With(exit.Unreachable, err)
	case errors.Is(err, workerlease.ErrOptions):
		return exit.BadUsage("leasectl override --help", err)
	}
	return advice.ForStore(t, err)
}
