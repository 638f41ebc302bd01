// Package lever gives the orders of an operator to the workers of a type: to pause, to prefer one of
// them, to release a lease, to leave a host; and it trims.
package lever

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/confirm"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Options of all levers.
type Options struct {
	WorkerType string
	Kind       store.OrderKind // of what Resume ends
	Target     string          // instance, claim or host
	Until      time.Time       // one of Until and For
	For        time.Duration
	Now        bool
	By, Reason string
	Retention  time.Duration // of Trim
	History    int           // of Copy
	Yes        bool          // don't ask
	JSON       bool
	// Ask asks the operator a question; nil if there is nobody to ask.
	Ask     func(question string) (string, error)
	Timeout time.Duration
}

// Given is what was written, as --output json shows it.
type Given struct {
	WorkerType string          `json:"workerType"`
	Seq        int64           `json:"seq"`
	Kind       store.OrderKind `json:"kind"`
	Target     string          `json:"target,omitzero"`
	Ends       bool            `json:"ends"`
	At         string          `json:"at"`
	Until      string          `json:"until"`
	Now        bool            `json:"now"`
	By         string          `json:"by"`
	Why        string          `json:"why,omitzero"`
	Heard      string          `json:"heard"`
	HeardBy    string          `json:"heardBy,omitzero"`
	Undo       string          `json:"undo,omitzero"`
	Warning    string          `json:"warning,omitzero"`
}

// Pause lets nobody claim for a while.
func Pause(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	if o.Now {
		if err := o.ask("stop the holder of %s when it reads that?", o.WorkerType); err != nil {
			return err
		}
	}
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		return workerlease.Pause(ctx, l, workerlease.PauseOptions{WorkerType: o.WorkerType, Until: o.Until, For: o.For, Now: o.Now, InstanceID: o.By, Reason: o.Reason})
	})
}

// Resume ends an order.
func Resume(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		if err := hasRecords(ctx, l, o.WorkerType, "no order is in force"); err != nil {
			return store.Record{}, err
		}
		return workerlease.Resume(ctx, l, workerlease.ResumeOptions{WorkerType: o.WorkerType, Kind: o.Kind, Target: o.Target, InstanceID: o.By, Reason: o.Reason})
	})
}

// Prefer lets one worker go first.
func Prefer(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		return workerlease.Prefer(ctx, l, workerlease.PreferOptions{WorkerType: o.WorkerType, Target: o.Target, Until: o.Until, For: o.For, Now: o.Now, InstanceID: o.By, Reason: o.Reason})
	})
}

// Release asks the holder to give up the rest of its lease.
func Release(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		if err := hasRecords(ctx, l, o.WorkerType, "there is nothing to release"); err != nil {
			return store.Record{}, err
		}
		return workerlease.AskRelease(ctx, l, workerlease.ReleaseOptions{WorkerType: o.WorkerType, Claim: o.Target, InstanceID: o.By, Reason: o.Reason})
	})
}

// hasRecords is an error if a worker type has no records: the name is mistyped, or nothing has begun yet.
func hasRecords(ctx context.Context, l store.Ledger, name, so string) error {
	newest, _, err := l.Tail(ctx, name, 1)
	if err != nil || len(newest) > 0 {
		return err
	}
	if err := inspect.CheckType(ctx, l, name); err != nil {
		return err
	}
	return exit.With(exit.Failure, fmt.Errorf("worker type %q has no records, so %s; nothing was written", name, so))
}

// ask asks, unless that is not to be.
func (o *Options) ask(format string, args ...any) error {
	if o.Yes {
		return nil
	}
	return confirm.Ask(o.Ask, fmt.Sprintf(format, args...), "nothing was written")
}

// opened calls act with the ledger of a target, within the time-out.
func (o *Options) opened(ctx context.Context, t storeuri.Target, act func(ctx context.Context, l store.Ledger) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ledger, isNew, err := t.OpenToLease(limited)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	if isNew {
		return advice.ForStore(t, fmt.Errorf("%s: %w", t.Place(), store.ErrMissing))
	}
	return act(limited, ledger)
}

// give gives one order, and says so.
func (o *Options) give(ctx context.Context, t storeuri.Target, out io.Writer, order func(context.Context, store.Ledger) (store.Record, error)) error {
	return o.opened(ctx, t, func(ctx context.Context, l store.Ledger) error {
		r, err := order(ctx, l)
		if err != nil {
			return failure(t, o, err)
		}
		g := given(r)
		g.Undo, g.Warning = undo(t, g), doubt(ctx, l, r)
		return o.show(out, g, g.text())
	})
}

// show writes an answer as JSON or as text.
func (o *Options) show(out io.Writer, answer any, text string) error {
	var err error
	if o.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(answer)
	} else {
		_, err = io.WriteString(out, display.Text(text))
	}
	if err != nil {
		return exit.With(exit.Failure, fmt.Errorf("it is written, but the output can't be: %w", err))
	}
	return nil
}

// given is what a record has brought.
func given(r store.Record) Given {
	o, _ := r.Order()
	g := Given{
		WorkerType: r.WorkerType, Seq: r.Seq, Kind: o.Kind, Target: o.Target, Ends: o.Removes(), At: store.Format(o.At),
		Until: store.Format(o.Until), Now: o.Now, By: o.By, Why: o.Why,
	}
	next, known := time.Time{}, false
	if schedule, err := slots.Parse(r.Schedule); err == nil {
		next, known = schedule.Next(o.At).Start, true
	}
	held := r.WindowEnd.After(o.At)
	extends := held && r.WindowEnd.Before(r.SlotEnd)
	lasts := func(by time.Time) bool { return o.Removes() || !o.Until.Before(by) }
	switch {
	case extends && !lasts(r.WindowEnd):
		g.Heard = "the holder may not read it: the order ends before the holder must extend its lease, by " + store.Format(r.WindowEnd)
	case !extends && held && known && !lasts(next):
		g.Heard = "the holder may not read it: the order ends before the holder's turn for the next slot, by " + store.Format(next)
		if o.Kind == store.OrderRelease {
			g.Heard += "; --force ends its lease even so"
		}
	case !extends && known && !lasts(next):
		g.Heard = "workers may not read it: the order ends before their turn for the next slot, by " + store.Format(next)
	case extends:
		g.Heard, g.HeardBy = "the holder reads it when it extends its lease", store.Format(r.WindowEnd)
	case held && known:
		g.Heard, g.HeardBy = "the holder reads it at its turn for the next slot", store.Format(next)
	case known:
		g.Heard, g.HeardBy = "workers read it at their turn for the next slot", store.Format(next)
	default:
		g.Heard = "workers read it at their first turn"
	}
	return g
}

// undo is the command that ends an order before its time; empty for one that needs none.
func undo(t storeuri.Target, g Given) string {
	command := "leasectl resume --worker-type " + g.WorkerType
	switch {
	case g.Ends || g.Kind == store.OrderRelease:
		return ""
	case g.Kind != store.OrderPause:
		command += " --kind " + string(g.Kind)
	}
	if g.Kind == store.OrderDrain {
		host, able := display.Word(g.Target)
		if !able {
			return advice.Command(t, command)
		}
		command += " --host " + host
	}
	return advice.Command(t, command)
}

// text is the same for people.
func (g Given) text() string {
	o := store.Order{Kind: g.Kind, Target: g.Target, Now: g.Now, By: g.By, Why: g.Why}
	o.At, _ = time.Parse(time.RFC3339, g.At)
	o.Until, _ = time.Parse(time.RFC3339, g.Until)
	heard := g.Heard
	if g.HeardBy != "" {
		heard += ", by " + g.HeardBy
	}
	text := fmt.Sprintf("wrote record %d of %s: %s\n%s; workers too old to know orders don't obey it\n", g.Seq, g.WorkerType, o, heard)
	if g.Undo != "" {
		text += "to end it sooner: " + g.Undo + "\n"
	}
	if g.Warning != "" {
		text += "warning: " + display.Line(g.Warning) + "\n"
	}
	return text
}

// failure is an error of package workerlease with its exit code, and what to try.
func failure(t storeuri.Target, o *Options, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	look := advice.Command(t, "leasectl inspect slots --worker-type "+o.WorkerType)
	if _, known := errors.AsType[*exit.Error](err); known {
		return err
	}
	switch {
	case is(workerlease.ErrOptions):
		return exit.BadUsage("", err)
	case is(workerlease.ErrNoTerm), is(workerlease.ErrHeadMoved), is(workerlease.ErrUnfitHead), is(workerlease.ErrTooManyOrders), is(workerlease.ErrLedgerFull):
		e := exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
		e.Try = look
		return e
	case is(workerlease.ErrOrderUnknown):
		e := exit.With(exit.Unreachable, err)
		e.Try = look
		return e
	case is(workerlease.ErrTimeUnknown):
		return exit.With(exit.Unreachable, err)
	}
	return advice.ForStore(t, err)
}

// oneLine joins texts that are lines.
func oneLine(lines []string) string { return strings.Join(lines, "") }
