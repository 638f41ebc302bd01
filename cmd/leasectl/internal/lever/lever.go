// Package lever gives the orders of an operator to the workers of a type: to pause, to prefer one of
// them, to release a lease, to leave a host; and it trims.
package lever

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/slotlease/slotlease/workerlease/operate"
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
	IfIdle     bool          // Trigger does nothing if a run may be in progress
	Wait       bool          // Trigger waits for the end of the run
	Risk       bool          // Resume ends the pause of a move, too
	Yes        bool          // don't ask
	Dry        bool          // write nothing: find out whether the order can be given
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
	// Outcome is what came of a run that was waited for.
	Outcome json.RawMessage `json:"outcome,omitempty"`
}

// Pause lets nobody claim for a while.
func Pause(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	if o.Now {
		if err := o.ask("stop the holder of %s when it reads that?", o.WorkerType); err != nil {
			return err
		}
	}
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		return operate.On(l).Give(ctx, operate.Order{Kind: store.OrderPause, WorkerType: o.WorkerType, Until: o.Until, For: o.For, Now: o.Now, InstanceID: o.By, Reason: o.Reason})
	})
}

// Resume ends an order.
func Resume(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		if err := hasRecords(ctx, l, o.WorkerType, "no order is in force"); err != nil {
			return store.Record{}, err
		}
		return operate.On(l).End(ctx, operate.Order{WorkerType: o.WorkerType, Kind: o.Kind, Target: o.Target, RiskTwoHolders: o.Risk, InstanceID: o.By, Reason: o.Reason})
	})
}

// Prefer lets one worker go first.
func Prefer(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		return operate.On(l).Give(ctx, operate.Order{Kind: store.OrderPrefer, WorkerType: o.WorkerType, Target: o.Target, Until: o.Until, For: o.For, Now: o.Now, InstanceID: o.By, Reason: o.Reason})
	})
}

// Release asks the holder to give up the rest of its lease.
func Release(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.give(ctx, t, out, func(ctx context.Context, l store.Ledger) (store.Record, error) {
		if err := hasRecords(ctx, l, o.WorkerType, "there is nothing to release"); err != nil {
			return store.Record{}, err
		}
		return operate.On(l).Give(ctx, operate.Order{Kind: store.OrderRelease, WorkerType: o.WorkerType, Target: o.Target, InstanceID: o.By, Reason: o.Reason})
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
	if o.Dry {
		return act(limited, unwritten{ledger})
	}
	return act(limited, ledger)
}

// unwritten is a ledger on which each append succeeds, and nothing is written.
type unwritten struct{ store.Ledger }

func (u unwritten) Unwrap() store.Ledger { return u.Ledger }

// Append checks a record alone.
func (unwritten) Append(_ context.Context, r store.Record) error { return r.Check() }

// AppendAfter isn't there: it would write.
func (unwritten) AppendAfter(context.Context, store.Record, store.Record) error {
	return errors.ErrUnsupported
}

// give gives one order, and says so.
func (o *Options) give(ctx context.Context, t storeuri.Target, out io.Writer, order func(context.Context, store.Ledger) (store.Record, error)) error {
	return o.opened(ctx, t, func(ctx context.Context, l store.Ledger) error {
		r, err := order(ctx, l)
		if err != nil {
			return failure(t, o, err)
		}
		g := o.given(ctx, t, l, r)
		return o.show(out, g, g.text())
	})
}

// given is what was written, and what is odd about that.
func (o *Options) given(ctx context.Context, t storeuri.Target, l store.Ledger, r store.Record) Given {
	g := given(r)
	g.Undo, g.Warning = undo(t, g), doubt(ctx, l, r)
	return g
}

// show writes an answer as JSON or as text.
func (o *Options) show(out io.Writer, answer any, text string) error {
	var err error
	if o.JSON {
		err = display.WriteJSON(out, answer, true)
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
	g.Heard, g.HeardBy = heard(r, o, next, known)
	return g
}

// heard is when workers read an order, and by when; next is when the next slot begins, if that is known.
func heard(r store.Record, o store.Order, next time.Time, known bool) (text, by string) {
	if o.Kind == store.OrderTrigger && !o.Removes() {
		if known {
			by = store.Format(next)
		}
		return "a worker runs it when no other run goes on: within a second if the store hints, else after its turn for the next slot", by
	}
	held := r.WindowEnd.After(o.At)
	extends := held && r.WindowEnd.Before(r.SlotEnd)
	lasts := func(by time.Time) bool { return o.Removes() || !o.Until.Before(by) }
	switch {
	case extends && !lasts(r.WindowEnd):
		return "the holder may not read it: the order ends before the holder must extend its lease, by " + store.Format(r.WindowEnd), ""
	case extends:
		return "the holder reads it when it extends its lease", store.Format(r.WindowEnd)
	case known && !lasts(next):
		return unheard(o, held, next), ""
	case held && known:
		return "the holder reads it at its turn for the next slot", store.Format(next)
	case o.Removes() && o.Kind != store.OrderPrefer:
		return "workers that it keeps from their slot read it within a minute", store.Format(o.At.Add(time.Minute))
	case known:
		return "workers read it at their turn for the next slot", store.Format(next)
	}
	return "workers read it at their first turn", ""
}

// unheard says that an order ends before anybody has to read it.
func unheard(o store.Order, held bool, next time.Time) string {
	if !held {
		return "workers may not read it: the order ends before their turn for the next slot, by " + store.Format(next)
	}
	text := "the holder may not read it: the order ends before the holder's turn for the next slot, by " + store.Format(next)
	if o.Kind == store.OrderRelease {
		text += "; --force ends its lease even so"
	}
	return text
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
	text := ""
	if g.Warning != "" { // It stands first: what follows looks as it should.
		text = "warning: " + display.Line(g.Warning) + "\n"
	}
	text += fmt.Sprintf("wrote record %d of %s: %s\n%s; workers too old to know orders don't obey it\n", g.Seq, g.WorkerType, o, heard)
	if g.Undo != "" {
		text += "to end it sooner: " + g.Undo + "\n"
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
	late, _ := errors.AsType[*workerlease.OptionError](err)
	switch {
	case late != nil && late.Field == "Until" && !o.Until.IsZero():
		return exit.BadUsage("", fmt.Errorf("--until %s: %s", late.Value, late.Rule))
	case is(workerlease.ErrOptions):
		return exit.BadUsage("", err)
	case is(operate.ErrPausedByMove):
		e := exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
		e.Try = "start workers with the other store, or repeat leasectl copy, which ends its pause; leasectl resume --risk-two-holders only if no worker with the other store can have the lease"
		return e
	case is(operate.ErrBusy):
		e := exit.With(exit.Unallocated, fmt.Errorf("%w; nothing was written", err))
		e.Try = "leave out --if-idle: then it runs afterwards"
		return e
	case is(operate.ErrNoTerm), is(operate.ErrHeadMoved), is(operate.ErrUnfitHead), is(operate.ErrTooManyOrders), is(operate.ErrLedgerFull):
		e := exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
		e.Try = look
		return e
	case is(operate.ErrOrderUnknown):
		e := exit.With(exit.Unreachable, err)
		e.Try = look
		return e
	case is(operate.ErrTimeUnknown):
		return exit.With(exit.Unreachable, err)
	}
	return advice.ForStore(t, err)
}
