package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

func (a *app) initCommand() *cobra.Command {
	timeout, onlyPrint := defaultTimeout, false
	c := a.onStore("init", "Create what the store needs; safe to repeat", func(c *cobra.Command, t storeuri.Target) error {
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		if onlyPrint {
			return advice.ForStore(t, a.printInit(ctx, t))
		}
		return advice.ForStore(t, a.init(ctx, t))
	})
	c.Flags().BoolVar(&onlyPrint, "print", false, "print what an administrator would run, and run nothing")
	a.timeoutFlag(c.Flags(), &timeout, waitForStore, time.Hour)
	return c
}

// init creates the parts of the ledger that are missing.
func (a *app) init(ctx context.Context, t storeuri.Target) (err error) {
	before, err := t.Open(ctx, true)
	missing := errors.Is(err, store.ErrMissing)
	if err != nil && !missing {
		return err
	}
	var types inspect.Types
	if before != nil {
		types, err = inspect.TypesIn(ctx, before)
		missing = errors.Is(err, store.ErrMissing)
		closeErr := storeuri.Close(ctx, before)
		if err != nil && !missing || closeErr != nil {
			return errors.Join(err, closeErr)
		}
	}
	ledger, err := t.Open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storeuri.Close(ctx, ledger)) }()
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	if text := store.Describe(ledger).Warning(); text != "" {
		a.errorf("leasectl: warning: %s\n", display.Line(a.scrub(text)))
	}
	place := display.Flat(t.Place())
	switch {
	case missing:
		a.printf("created the ledger %s%s\n", place, provision(ledger))
	case !types.None():
		a.printf("the ledger %s was there already, with the worker types %s\n", place, types)
	default:
		a.printf("the ledger %s is ready, without records\n", place)
	}
	return nil
}

// provision is what throughput a ledger that was created has got, where that costs.
func provision(l store.Ledger) string {
	if p, ok := store.As[interface{ Provision() string }](l); ok {
		return " (" + p.Provision() + ")"
	}
	return ""
}

// printInit prints what init would run.
func (a *app) printInit(ctx context.Context, t storeuri.Target) error {
	ledger, err := t.Open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { _ = storeuri.Close(ctx, ledger) }()
	script := store.Describe(ledger).InitScript
	if script == nil {
		return exit.BadUsage("leasectl init", fmt.Errorf("%s can't say what its init runs", display.Flat(t.Place())))
	}
	a.printf("%s", script())
	return nil
}
