// Package override ends what is in force in a ledger, as an operator says, after it has shown
// what that risks.
package override

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Options of Run.
type Options struct {
	WorkerType, InstanceID, Reason string
	Seq                            int64
	DoneUntil                      time.Time // zero: as package workerlease decides
	Yes                            bool      // don't show anything, and don't ask
	// Ask asks the operator a question; nil if there is nobody to ask.
	Ask     func(question string) (string, error)
	Timeout time.Duration // of what comes before the question, and of what comes after it
}

// Run shows what an override would end, asks, and writes it. What it shows goes to w.
func Run(ctx context.Context, t storeuri.Target, o Options, w io.Writer) (err error) {
	opening, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ledger, isNew, err := t.OpenToLease(opening)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	if isNew {
		return advice.ForStore(t, fmt.Errorf("%s: %w", t.Place(), store.ErrMissing))
	}
	return inLedger(ctx, t, ledger, o, w)
}

func inLedger(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, w io.Writer) error {
	what := workerlease.OverrideOptions{
		WorkerType: o.WorkerType, Seq: o.Seq, InstanceID: o.InstanceID, Reason: o.Reason, DoneUntil: o.DoneUntil,
	}
	limited := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, o.Timeout) }
	if !o.Yes {
		looking, cancel := limited()
		defer cancel()
		plan, err := workerlease.PlanOverride(looking, l, what)
		if err != nil {
			return failure(t, o, err)
		}
		if _, err := io.WriteString(w, display.Printable(text(plan))); err != nil {
			return err
		}
		if err := confirm(o); err != nil {
			return err
		}
	}
	writing, cancel := limited()
	defer cancel()
	r, err := workerlease.Override(writing, l, what)
	if err != nil {
		return failure(t, o, err)
	}
	_, err = fmt.Fprintf(w, "wrote record %d: %q has overridden record %d; slots are free from %s on%s\n",
		r.Seq, display.Printable(r.InstanceID), o.Seq, store.Format(r.WindowStart), done(r))
	return err
}

// confirm asks whether to go on.
func confirm(o Options) error {
	if o.Ask == nil {
		return exit.BadUsage("--yes", errors.New("the input is no terminal, so that nobody can be asked; nothing was written"))
	}
	answer, err := o.Ask(fmt.Sprintf("override record %d? [y/N]", o.Seq))
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return exit.With(exit.Failure, errors.New("nothing was written"))
	}
	return nil
}

// failure is an error of package workerlease with its exit code, and what to try.
func failure(t storeuri.Target, o Options, err error) error {
	switch {
	case errors.Is(err, workerlease.ErrHeadMoved):
		e := exit.With(exit.Failure, fmt.Errorf("%w; nothing was written", err))
		e.Try = "leasectl inspect slots --worker-type " + o.WorkerType
		return e
	case errors.Is(err, workerlease.ErrOverrideUnknown):
		e := exit.With(exit.Unreachable, err)
		e.Try = "leasectl inspect slots --worker-type " + o.WorkerType
		return e
	case errors.Is(err, workerlease.ErrTimeUnknown):
		return exit.With(exit.Unreachable, err)
	case errors.Is(err, workerlease.ErrOptions):
		return exit.BadUsage("leasectl override --help", err)
	}
	return advice.ForStore(t, err)
}

// mostTerms is how many terms are shown: more may be among poison.
const mostTerms = 10

// text is what a plan ends, and risks.
func text(p workerlease.OverridePlan) string {
	var b strings.Builder
	head := p.Head
	fmt.Fprintf(&b, "worker type %s, record %d: ", head.WorkerType, head.Seq)
	switch {
	case p.HeadDefect != nil:
		fmt.Fprintf(&b, "poison: %s\n", strings.Join(strings.Fields(p.HeadDefect.Error()), " "))
	default:
		fmt.Fprintf(&b, "a %s by %q, until %s\n", head.Kind, head.InstanceID, store.Format(head.WindowEnd))
	}
	terms := p.Terms[:min(len(p.Terms), mostTerms)]
	for _, r := range terms {
		fmt.Fprintf(&b, "in force: record %d, %q%s, token %d, until %s\n", r.Seq, r.InstanceID, group(r), r.Token, store.Format(r.WindowEnd))
	}
	switch more := len(p.Terms) - len(terms); {
	case more > 0:
		fmt.Fprintf(&b, "in force: %d more, of older records\n", more)
	case len(terms) == 0:
		fmt.Fprintf(&b, "in force: nothing that can be read\n")
	}
	if !p.Record.DoneUntil.Equal(head.DoneUntil) && head.Defect == "" {
		fmt.Fprintf(&b, "done: slots up to %s, from then on up to %s\n", moment(head.DoneUntil), moment(p.Record.DoneUntil))
	}
	for _, r := range terms {
		fmt.Fprintf(&b, "risk: if %q still works, two work until %s\n", r.InstanceID, store.Format(r.WindowEnd))
	}
	if p.HeadDefect != nil {
		fmt.Fprintf(&b, "risk: if a worker obeys what others can't, two work until it looks again\n")
	}
	if p.Record.DoneUntil.Before(head.DoneUntil) && head.Defect == "" {
		fmt.Fprintf(&b, "risk: jobs of slots after %s run again, even if they were done\n", moment(p.Record.DoneUntil))
	}
	return b.String()
}

func group(r store.Record) string {
	if r.Group == "" {
		return ""
	}
	return fmt.Sprintf(" (group %q)", r.Group)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return store.Format(t)
}

// done is what an override says of slots that are done.
func done(r store.Record) string {
	if r.DoneUntil.IsZero() {
		return ""
	}
	return ", and done up to " + store.Format(r.DoneUntil)
}
