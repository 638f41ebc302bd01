// Package inspect shows a ledger's slots, or its workers: once or again and again, as a table or as JSON.
// It writes nothing to the ledger.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// Show shows the slots of a worker type in a store. With Watch it returns when the
// context ends.
func Show(ctx context.Context, t storeuri.Target, o Options, s Screen) error {
	return open(ctx, t, o, func(ledger store.Ledger) error { return showLedger(ctx, t, ledger, o, s) })
}

// showLedger shows the slots of a ledger.
func showLedger(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	if o.WorkerType == store.Sightings {
		return exit.BadUsage("", fmt.Errorf("%s has no slots: under this name workers record since when a record of a worker type can't be obeyed", o.WorkerType))
	}
	return glance(ctx, o, s, lookAtSlots(ctx, t, l, o))
}

func lookAtSlots(ctx context.Context, t storeuri.Target, l store.Ledger, o Options) func() (snapshot, error) {
	var types Types
	limit := 0 // of records, as it sufficed the last time
	return glimpses(ctx, t, l, o, func(ctx context.Context, ledger *charges.Ledger, found *snapshot) (err error) {
		if o.WorkerType == "" {
			if types, err = slottedIn(ctx, ledger); err == nil {
				o.WorkerType, err = types.only()
			}
			if err != nil {
				return err
			}
		}
		err = found.take(ctx, ledger, o, limit)
		if found.try != "" {
			found.try = advice.Command(t, found.try)
		}
		found.note, found.types, limit = store.Describe(l).Note(), types, max(limit, found.limit)
		return err
	})
}

// open opens the ledger of a store for a look at it.
func open(ctx context.Context, t storeuri.Target, o Options, show func(store.Ledger) error) (err error) {
	opening, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ledger, err := t.Open(opening, true)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	return show(ledger)
}

// once shows what one look finds.
func once[V view](o Options, s Screen, look func() (V, error)) error {
	found, err := look()
	s.warn(found, false)
	if err != nil {
		return err
	}
	if o.JSON {
		return writeJSON(s, found, true)
	}
	s.printf("%s", found.drawing(s.Colours, false))
	return nil
}
