// Package inspect shows a ledger's slots: once or again and again, as a table or as JSON.
// It writes nothing to the ledger.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// The forms of output.
const (
	Table = "table"
	JSON  = "json"
)

// Options are the options of inspect slots.
type Options struct {
	WorkerType string        // "": the only one of the ledger
	Last       int           // how many slots to show
	Output     string        // Table or JSON
	Watch      bool          // show them again and again
	Interval   time.Duration // between two looks
	Timeout    time.Duration // of each look
}

// Screen is where slots are shown.
type Screen struct {
	io.Writer

	Terminal bool // the table can be drawn over the last one
	Colours  bool
	// Report shows an error of a look, when there will be another.
	Report func(error)
}

func (s Screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// Slots shows the slots of a worker type in a store. With Watch it returns when the
// context ends.
func Slots(ctx context.Context, t storeuri.Target, o Options, s Screen) (err error) {
	opening, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ledger, err := t.Open(opening, true)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	return show(ctx, t, ledger, o, s)
}

// show shows the slots of a ledger.
func show(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	ledger := &charges.Ledger{Ledger: l}
	limit := 0 // of records, as it sufficed the last time
	look := func() (snapshot, error) {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		if o.WorkerType == "" {
			var err error
			if o.WorkerType, err = onlyType(limited, ledger); err != nil {
				return snapshot{}, advice.ForStore(t, err)
			}
		}
		found, err := take(limited, ledger, o, limit)
		found.store, found.charges, limit = t.Shown, ledger.Charges(), max(limit, found.limit)
		return found, advice.ForStore(t, err)
	}
	if o.Watch {
		return watch(ctx, o, s, look)
	}
	found, err := look()
	if err != nil {
		return err
	}
	if o.Output == JSON {
		return found.writeJSON(s, true)
	}
	s.printf("%s", found.drawing(s.Colours))
	return nil
}

// drawing is the table with its title, and with what it cost, if anything.
func (s snapshot) drawing(colours bool) string {
	table := "no records yet\n"
	if len(s.rows) > 0 {
		table = strings.Join(s.tableLines(colours), "\n") + "\n"
	}
	if cost := charges.Text(s.charges); cost != "" {
		table += "\nlooking at it cost " + cost + "\n"
	}
	return s.title() + "\n\n" + table
}
