package lever

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/override"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// Trim deletes old records of a worker type.
func Trim(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	if err := o.ask("delete the records of %s that are older than %v?", o.WorkerType, o.Retention); err != nil {
		return err
	}
	return o.opened(ctx, t, func(ctx context.Context, l store.Ledger) error {
		if err := inspect.CheckType(ctx, l, o.WorkerType); err != nil {
			return advice.ForStore(t, err)
		}
		n, err := operate.On(l).Trim(ctx, o.WorkerType, o.Retention)
		answer := struct {
			WorkerType string `json:"workerType"`
			Deleted    int    `json:"deleted"`
			Complete   bool   `json:"complete"`
		}{o.WorkerType, n, err == nil}
		if err != nil && n == 0 {
			return failure(t, &o, err)
		}
		text := fmt.Sprintf("deleted %d records of %s\n", n, o.WorkerType)
		if n == 0 {
			text = fmt.Sprintf("deleted nothing of %s: what is younger than %s stays, and so do the newest 100 records\n", o.WorkerType, display.Brief(o.Retention))
		}
		shown := o.show(out, answer, text)
		if err != nil {
			return errors.Join(shown, failure(t, &o, err))
		}
		return shown
	})
}

// Force ends the lease in the newest record by an override, after it has shown what that risks.
func Force(ctx context.Context, t storeuri.Target, o Options, s override.Screen) error {
	seq := int64(0)
	err := o.opened(ctx, t, func(ctx context.Context, l store.Ledger) error {
		p, err := operate.On(l).PlanOverride(ctx, operate.OverrideOptions{WorkerType: o.WorkerType, Seq: 1})
		if seq = p.Head.Seq; seq > 0 {
			return nil
		}
		if errors.Is(err, operate.ErrHeadMoved) {
			if err := inspect.CheckType(ctx, l, o.WorkerType); err != nil {
				return advice.ForStore(t, err)
			}
			return exit.With(exit.Failure, fmt.Errorf("worker type %q has no record that workers go by, so there is nothing to release", o.WorkerType))
		}
		return failure(t, &o, err)
	})
	if err != nil {
		return err
	}
	return override.Run(ctx, t, override.Options{
		WorkerType: o.WorkerType, InstanceID: o.By, Reason: o.Reason, Seq: seq, Yes: o.Yes, Ask: o.Ask, Timeout: o.Timeout,
	}, s)
}
