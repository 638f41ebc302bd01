// Package doctor finds out whether a store is set up right: by what the store says of itself
// (store.Description), by its clock beside this machine's, by the newest records of each worker type and by
// the roster. It writes nothing.
//
// A check that can't be made is skipped, with the reason, and hides no other. Each has a limit, so that all
// of them end in time whatever hangs.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// Options are the options of doctor.
type Options struct {
	WorkerType string        // "": all
	Timeout    time.Duration // of all checks together
	// Scrub takes secrets out of a text.
	Scrub func(string) string
}

// Report is what was found.
type Report struct {
	store    string
	at       time.Time // of the store; zero if it can't be read
	findings []store.Finding
	durable  *store.Durability // nil if the store doesn't say
	took     time.Duration
	units    float64 // that the store charged
}

// Examine makes all checks. The error is one of how the store was named, or of a worker type that isn't there: then
// nothing was found out.
func Examine(ctx context.Context, t storeuri.Target, o Options) (Report, error) {
	began := time.Now()
	// What is left of the time is for closing, and for what doesn't end with its context.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout-o.Timeout/8)
	defer cancel()
	ctx, receipt := store.WithReceipt(ctx)
	found, ledger, err := examineStore(ctx, t)
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Usage {
		return Report{}, err
	}
	r := Report{store: t.Shown}
	if ledger != nil {
		defer func() { _ = storeuri.Close(ctx, ledger) }() // it was only read
	}
	if why := unusable(found, ledger); why != "" {
		for _, check := range generic {
			if check != checkNTP {
				found = append(found, skip(check, why))
			}
		}
		found = append(found, judgeNTP())
	} else {
		f := ask(ctx, ledger, o.WorkerType, o.Timeout)
		if e, ok := errors.AsType[*exit.Error](f.unknown); ok && e.Code == exit.Usage {
			return Report{}, f.unknown
		}
		r.at = f.at
		found = append(found, f.judge(t)...)
	}
	if ledger != nil && store.Describe(ledger).Durability != nil {
		d := store.Describe(ledger).Durability() // when the store has been asked all that it may depend on
		r.durable = &store.Durability{Crash: o.Scrub(d.Crash), Power: o.Scrub(d.Power), Failover: o.Scrub(d.Failover)}
	}
	r.findings = sorted(found)
	for i := range r.findings {
		o.finish(t, &r.findings[i])
	}
	r.took, r.units = time.Since(began), receipt.Units()
	return r, nil
}

// finish completes a finding's remedy, and takes out secrets.
func (o Options) finish(t storeuri.Target, f *store.Finding) {
	switch {
	case f.Remedy == "leasectl init":
		f.Remedy = advice.Command(t, f.Remedy)
	case f.Remedy == "" && f.Err != nil && f.Level != store.LevelSkip:
		if e, ok := errors.AsType[*exit.Error](advice.ForStore(t, f.Err)); ok {
			f.Remedy, _, _ = strings.Cut(e.Try, "; leasectl doctor ") // This is it.
		}
	}
	f.Text, f.Remedy = o.Scrub(f.Text), o.Scrub(f.Remedy)
}

// examineStore opens the ledger, and lets the store examine itself, also if it can't be opened. The ledger is
// nil then.
func examineStore(ctx context.Context, t storeuri.Target) ([]store.Finding, store.Ledger, error) {
	type outcome struct {
		found  []store.Finding
		ledger store.Ledger
		err    error
	}
	// Two thirds of the time: the rest is for the checks that follow.
	part := ctx
	if d, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		part, cancel = context.WithTimeout(ctx, time.Until(d)*2/3)
		defer cancel()
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.ledger, o.err = t.Open(part, true)
		found, err := t.Examine(part, o.ledger)
		if o.found = found; o.err == nil {
			o.err = err
		}
		done <- o
	}()
	var o outcome
	select {
	case o = <-done:
	case <-time.After(time.Until(deadline(part)) + 250*time.Millisecond):
		o.err = context.DeadlineExceeded
	}
	// A store that can't be opened says why itself, or else the error does.
	if o.err != nil && !failed(o.found) {
		text := o.err.Error()
		if errors.Is(o.err, context.DeadlineExceeded) {
			text = "no answer in time: " + text
		}
		o.found = append(o.found, store.Finding{Check: store.CheckConnection, Level: store.LevelFail, Text: text, Err: o.err})
	}
	return o.found, o.ledger, o.err
}

func deadline(ctx context.Context) time.Time { d, _ := ctx.Deadline(); return d }

// failed reports that a check failed.
func failed(found []store.Finding) bool {
	for _, f := range found {
		if f.Level == store.LevelFail {
			return true
		}
	}
	return false
}

// unusable is why nothing can be asked of the ledger; empty if something can.
func unusable(found []store.Finding, l store.Ledger) string {
	for _, f := range found {
		if f.Level == store.LevelFail && (f.Check == store.CheckConnection || f.Check == store.CheckLedger) {
			return "see " + f.Check
		}
	}
	if l == nil {
		return "the ledger can't be opened"
	}
	return ""
}

// Err is the error that says what failed; nil if nothing did.
func (r Report) Err() error {
	var names []string
	for _, f := range r.findings {
		if f.Level == store.LevelFail {
			names = append(names, f.Check)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return exit.With(exit.Unsound, fmt.Errorf("a check failed: %s", names[0]))
	}
	return exit.With(exit.Unsound, fmt.Errorf("%d checks failed: %s", len(names), strings.Join(names, ", ")))
}

func skip(check, why string) store.Finding {
	return store.Finding{Check: check, Level: store.LevelSkip, Text: why}
}

func ok(check, format string, args ...any) store.Finding {
	return store.Finding{Check: check, Level: store.LevelOK, Text: fmt.Sprintf(format, args...)}
}

func warn(check, remedy, format string, args ...any) store.Finding {
	return store.Finding{Check: check, Level: store.LevelWarn, Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

// unread is the finding of a check whose question the store didn't answer.
func unread(check string, err error) store.Finding {
	switch {
	case errors.Is(err, store.ErrRefused):
		return skip(check, "workers don't use this store: see what failed")
	case errors.Is(err, context.DeadlineExceeded):
		return skip(check, "no answer in time")
	}
	return skip(check, "the store answered: "+err.Error())
}
