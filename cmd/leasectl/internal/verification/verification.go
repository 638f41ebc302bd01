// Package verification reads whole ledgers, and shows what is wrong with them.
package verification

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// Options of Run.
type Options struct {
	// WorkerType is empty for all.
	WorkerType string
	// JSON makes the output one object.
	JSON bool
	// Strict makes warnings fail.
	Strict bool
	// Timeout is how long to wait for each answer of the store.
	Timeout time.Duration
}

// Output is where results go.
type Output struct {
	Writer io.Writer
	// Progress is shown while ledgers are read; nil for none.
	Progress func(text string)
}

// result is what was found in a store.
type result struct {
	at      time.Time
	store   string
	names   []verify.Finding // about no record
	ledgers []*verify.Report
	warning string
	charges workerlease.Charges
}

// Run verifies the ledgers of a store, and shows what it found. If that is faults, or with Strict
// warnings, the error has the code exit.Unsound.
func Run(ctx context.Context, t storeuri.Target, o Options, out Output) (err error) {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	l, err := t.Open(limited, true)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = exit.Join(err, storeuri.Close(ctx, l)) }()
	r, err := of(ctx, t, l, o, out)
	if err != nil {
		return err
	}
	if err := r.write(out.Writer, o.JSON); err != nil {
		return err
	}
	return r.verdict(o.Strict)
}

// Of verifies the ledgers of a store that is open, and returns what [Run] prints as JSON.
func Of(ctx context.Context, t storeuri.Target, l store.Ledger, o Options) (Result, error) {
	r, err := of(ctx, t, l, o, Output{})
	if err != nil {
		return Result{}, err
	}
	return r.json(), nil
}

func of(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, out Output) (result, error) {
	ledger := charges.New(l)
	r, err := read(ctx, ledger, o, out)
	if err != nil {
		return r, advice.ForStore(t, err)
	}
	r.store, r.warning, r.charges = t.Shown, cmp.Or(r.warning, store.Describe(l).Warning()), ledger.Charges()
	return r, nil
}

// read verifies the ledgers of a store, or the one of a worker type.
func read(ctx context.Context, l *charges.Ledger, o Options, out Output) (r result, err error) {
	var names []string
	if err := within(ctx, o, func(ctx context.Context) error {
		if o.WorkerType != "" {
			names = []string{o.WorkerType}
			return inspect.CheckType(ctx, l, o.WorkerType)
		}
		types, err := inspect.TypesIn(ctx, l)
		names = types.Valid
		r.names = verify.Names(append(types.Valid, types.Invalid...))
		return err
	}); err != nil {
		return r, err
	}
	var refused error
	for _, name := range names {
		report, err := readOne(ctx, l, name, o, out)
		switch {
		case errors.Is(err, store.ErrRefused): // Others may be sound.
			refused = cmp.Or(refused, err)
			r.names = append(r.names, verify.Unread(name, err))
		case err != nil:
			return r, err
		default:
			r.ledgers = append(r.ledgers, report)
		}
	}
	if refused != nil && len(r.ledgers) == 0 {
		return r, refused
	}
	err = within(ctx, o, func(ctx context.Context) error {
		stamp, err := l.Now(ctx)
		if r.at = stamp.Time; err == nil {
			r.askWorkers(ctx, l, o.WorkerType)
		}
		return err
	})
	return r, err
}

// askWorkers finds the ledgers that have no records because the store has lost them, as workers that are there say. The roster is
// for information: if it can't be read, there are none, and a warning says so.
func (r *result) askWorkers(ctx context.Context, l *charges.Ledger, workerType string) {
	crews := map[string][]store.Presence{}
	all, err := l.Presences(ctx, workerType)
	if errors.Is(err, store.ErrRefused) {
		r.warning = inspect.Unlisted(err)
	}
	for _, p := range all {
		crews[p.WorkerType] = append(crews[p.WorkerType], p)
	}
	for _, name := range slices.Sorted(maps.Keys(crews)) {
		names := inspect.SayLost(crews[name], r.at)
		known := slices.ContainsFunc(r.ledgers, func(of *verify.Report) bool { return of.WorkerType == name && of.Records > 0 })
		if len(names) > 0 && !known { // Else its records say so, or will.
			r.names = append(r.names, verify.Finding{
				Code: verify.RecordsLost, Severity: verify.Warning,
				Text: name + " has no records: " + inspect.LostText(names) + ".", Remedy: "leasectl doctor says what to do.",
			})
		}
	}
}

// within does something that the store has to answer in time.
func within(ctx context.Context, o Options, do func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return do(limited)
}

// readOne verifies the ledger of a worker type. Its end is the newest record that it had when it
// was begun: what is appended meanwhile may be dated ahead of the time that was read.
func readOne(ctx context.Context, l *charges.Ledger, name string, o Options, out Output) (*verify.Report, error) {
	var newest []store.Record
	var stamp store.Stamp
	if err := within(ctx, o, func(ctx context.Context) (err error) {
		if newest, _, err = l.Tail(ctx, name, 1); err == nil {
			stamp, err = l.Now(ctx)
		}
		return err
	}); err != nil {
		return nil, err
	}
	v := verify.New(verify.Options{WorkerType: name, Now: stamp.Time, Uncertainty: stamp.Granularity + stamp.MaxAge + stamp.Skew})
	last := int64(0)
	for _, r := range newest {
		if r.Seq == 0 {
			v.Unreachable(r)
		}
		last = max(last, r.Seq)
	}
	first := int64(0) // record that was read
	for after := int64(0); after < last; {
		var page []store.Record
		oldest := int64(0) // that is left when records are missing: they may have been trimmed meanwhile
		if err := within(ctx, o, func(ctx context.Context) (err error) {
			if page, err = l.Page(ctx, name, after, store.MaxPage); err != nil || len(page) == 0 {
				return err
			}
			if first == 0 {
				first, after = page[0].Seq, page[0].Seq-1
			}
			if page[len(page)-1].Seq == after+int64(len(page)) {
				return nil
			}
			rest, err := l.Page(ctx, name, 0, 1)
			if len(rest) > 0 {
				oldest = rest[0].Seq
			}
			return err
		}); err != nil || len(page) == 0 {
			return v.Report(), err
		}
		for _, r := range page {
			if r.Seq > last {
				return v.Report(), nil
			}
			if r.Seq > after+1 && trimmed(after, first, oldest) {
				v.Trimmed()
			}
			after = r.Seq
			v.Add(r)
		}
		if out.Progress != nil {
			out.Progress(fmt.Sprintf("%s: record %d of %d", name, after, last))
		}
	}
	return v.Report(), nil
}

// trimmed reports that records right above a Seq were trimmed since the first was read, by the oldest that
// is left: it is above, or so little below that both are in one batch, which is deleted in any order.
func trimmed(below, first, oldest int64) bool {
	return oldest > below || oldest > first && below-oldest < store.TrimBatch
}

// verdict is the error of what was found, nil if the ledgers are sound.
func (r result) verdict(strict bool) error {
	faults, warnings := r.count()
	switch {
	case faults > 0:
		return exit.With(exit.Unsound, fmt.Errorf("found %s", display.Count(faults, "fault")))
	case strict && warnings > 0:
		return exit.With(exit.Unsound, fmt.Errorf("found %s, and --strict is given", display.Count(warnings, "warning")))
	}
	return nil
}

func (r result) count() (faults, warnings int) {
	for _, l := range r.ledgers {
		faults, warnings = faults+l.Faults, warnings+l.Warnings
	}
	for _, f := range r.names {
		if f.Severity == verify.Fault {
			faults++
		} else {
			warnings++
		}
	}
	return faults, warnings
}
