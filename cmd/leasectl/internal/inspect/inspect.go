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
	return open(ctx, t, o, func(ledger store.Ledger) error {
		if !o.Stale {
			return showLedger(ctx, t, ledger, o, s)
		}
		opening, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		c, err := openCopy(opening, t, ledger)
		if err != nil {
			return advice.ForStore(t, err)
		}
		defer func() { _ = storeuri.Close(ctx, c) }() // it was only read
		return showLedger(ctx, t, c, o, s)
	})
}

// showLedger shows the slots of a ledger.
func showLedger(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	if o.WorkerType == store.Sightings {
		return exit.BadUsage("", fmt.Errorf("%s has no slots: under this name workers record since when a record of a worker type can't be obeyed", o.WorkerType))
	}
	ledger := &charges.Ledger{Ledger: l}
	var types Types
	limit := 0 // of records, as it sufficed the last time
	look := func() (snapshot, error) {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		of, err := copyOf(limited, l)
		if err != nil {
			return snapshot{}, advice.ForStore(t, err)
		}
		if o.WorkerType == "" {
			if types, err = TypesIn(limited, ledger); err == nil {
				o.WorkerType, err = types.only()
			}
			if err != nil {
				return snapshot{}, advice.ForStore(t, err)
			}
		}
		found, err := take(limited, ledger, o, limit)
		switch {
		case of.server != "":
			found.try = "" // What an operator does, must not follow from old records.
		case found.try != "":
			found.try = advice.Command(t, found.try)
		}
		found.copied = of
		if n, ok := l.(store.Noter); ok {
			found.note = n.Note()
		}
		found.warning, found.types, found.store, found.charges, limit = storeuri.Warning(l), types, t.Shown, ledger.Charges(), max(limit, found.limit)
		return found, advice.ForStore(t, err)
	}
	if o.Watch {
		return watchSlots(ctx, o, s, look)
	}
	return once(o, s, look)
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
	if o.Output == JSON {
		return found.writeJSON(s, true)
	}
	s.printf("%s", found.drawing(s.Colours, false))
	return nil
}
