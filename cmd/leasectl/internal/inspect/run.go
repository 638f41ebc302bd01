package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Run shows the runs of one slot, with the end of what they wrote where that was kept: of the slot at a moment or, if
// that is zero, of the newest one with a run of which the ledger says what came.
func Run(ctx context.Context, t storeuri.Target, o Options, at Moment, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error {
		return showRun(ctx, t, l, o, at, s)
	})
}

func showRun(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, at Moment, s Screen) error {
	return once(o, s, lookAtRun(ctx, t, l, o, at))
}

func lookAtRun(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, at Moment) func() (runs, error) {
	return glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *runs) error {
		return found.take(ctx, l, o, at)
	})
}

// runs are the terms of one slot.
type runs struct{ snapshot }

// take asks a ledger.
func (r *runs) take(ctx context.Context, l *charges.Ledger, o Options, at Moment) error {
	of := func(e history.Entry) bool { return e.OutcomeKnown }
	if at == (Moment{}) {
		if err := r.snapshot.take(ctx, l, o, 0); err != nil {
			return err
		}
	} else {
		if err := r.now(ctx, l); err != nil {
			return err
		}
		r.workerType = o.WorkerType
		moment, err := momentIn(ctx, l, o.WorkerType, at, r.at)
		if err != nil {
			return err
		}
		records, err := recordsAround(ctx, l, o.WorkerType, moment)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return CheckType(ctx, l, o.WorkerType)
		}
		r.rows = history.Read(records, r.at, nil)
		of = func(e history.Entry) bool { return e.Slot.Contains(moment) }
	}
	r.reasons = nil
	r.rows = slices.DeleteFunc(r.rows, func(e history.Entry) bool { return e.Record.Kind == store.KindOrder && e.State != history.Poison })
	newest := len(r.rows) - 1
	for newest >= 0 && !of(r.rows[newest]) {
		newest--
	}
	if newest < 0 {
		r.rows = nil
		return nil
	}
	slot := r.rows[newest].Slot
	r.rows = slices.DeleteFunc(r.rows, func(e history.Entry) bool {
		return !e.Slot.Start.Equal(slot.Start) || e.Record.InstanceID == "" // Nobody has run anything.
	})
	return nil
}

// drawing is a line for each run, and what it wrote below it.
func (r runs) drawing(_, _ bool) string {
	var b strings.Builder
	if len(r.rows) == 0 {
		b.WriteString("no run\n")
	}
	style := timeStyle{whole: true}
	for i, e := range r.rows {
		if i == 0 {
			fmt.Fprintf(&b, "slot from %s%s to %s\n", style.text(e.Slot.Start, r.at), beside(e.Slot.Start, zone(e.Record.Schedule), true), style.text(e.Slot.End, r.at))
		}
		attempt := ""
		if e.Attempt > 0 {
			attempt = fmt.Sprintf("attempt %d, ", e.Attempt)
		}
		fmt.Fprintf(&b, "\n%sby %s: %s\n", attempt, display.Flat(workedBy(e)), display.Line(strings.Trim(stateOf(e)+", "+e.Note(), ", ")))
		b.WriteString(written(e))
	}
	return r.framed("worker type "+display.Flat(r.workerType), b.String(), false)
}

// written is the end of what a run wrote, indented, or nothing.
func written(e history.Entry) string {
	if e.Outcome.Output == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(e.Outcome.Output) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		b.WriteString(strings.TrimRight("  | "+display.Flat(line), " ") + "\n")
	}
	return b.String()
}
