package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Workers shows the workers of a worker type, or of all. With Watch it returns when the context ends.
func Workers(ctx context.Context, t storeuri.Target, o Options, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error { return showWorkers(ctx, t, l, o, s) })
}

// showWorkers shows the workers in the roster of a ledger.
func showWorkers(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	return glance(ctx, o, s, lookAtWorkers(ctx, t, l, o))
}

func lookAtWorkers(ctx context.Context, t storeuri.Target, l store.Ledger, o Options) func() (crew, error) {
	return glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *crew) error {
		found.workerType = o.WorkerType
		return found.take(ctx, l)
	})
}

// crew are the workers at a moment.
type crew struct {
	glimpse

	workerType string // "": all
	workers    []workerlease.Candidate
	absent     []store.Record // grants in force to workers that aren't in the roster
}

// take reads the roster of a ledger.
func (c *crew) take(ctx context.Context, l *charges.Ledger) error {
	err := c.now(ctx, l)
	if err != nil {
		return err
	}
	if c.workers, err = workerlease.NewClient(l, workerlease.ClientOptions{}).Candidates(ctx, c.workerType); err != nil {
		return err
	}
	if err := c.findHolders(ctx, l); err != nil {
		return err
	}
	for i := range c.workers {
		c.workers[i].Missed = c.missed(c.workers[i])
	}
	if c.workerType == "" || len(c.workers) > 0 {
		return nil
	}
	return CheckType(ctx, l, c.workerType)
}

// findHolders finds the holders that aren't in the roster: of an earlier version, or without one.
func (c *crew) findHolders(ctx context.Context, l store.Ledger) error {
	names := []string{c.workerType}
	if c.workerType == "" {
		types, err := TypesIn(ctx, l)
		if err != nil {
			return err
		}
		names = types.Valid
	}
	for _, name := range names {
		if slices.ContainsFunc(c.workers, func(w workerlease.Candidate) bool { return w.WorkerType == name && w.Holds }) {
			continue
		}
		const enough = 20 // records, to find the one in force
		records, _, err := l.Tail(ctx, name, enough)
		if err != nil && (!errors.Is(err, store.ErrRefused) || len(names) == 1) {
			return err
		}
		if err != nil {
			c.warning = fmt.Sprintf("who holds %s isn't known: %v", name, err)
		}
		if e, held := history.Holder(history.Read(records, c.at, nil), c.at); held {
			c.absent = append(c.absent, e.Record)
		}
	}
	return nil
}

// missed is why a worker did not get its newest slot, as it says. Who had that then may have died since, or lost it.
func (c *crew) missed(w workerlease.Candidate) string {
	const has = " has it"
	name, priority, had := strings.Cut(w.Missed, has)
	there := func(h workerlease.Candidate) bool {
		return h.WorkerType == w.WorkerType && h.Standing == workerlease.Holds && name == cmp.Or(h.Group, h.InstanceID)
	}
	absent := func(r store.Record) bool {
		return r.WorkerType == w.WorkerType && name == cmp.Or(r.Group, r.InstanceID)
	}
	switch {
	case w.Holds:
		return "" // It has won a slot since it wrote that.
	case !had || slices.ContainsFunc(c.workers, there) || slices.ContainsFunc(c.absent, absent):
		return w.Missed
	}
	return name + " had it" + priority
}

// absentText names the holders that aren't in the roster.
func (c crew) absentText() (text string) {
	for _, r := range c.absent {
		text += "\n" + display.Line(fmt.Sprintf("%s holds %s, and isn't in the roster", display.Clip(cmp.Or(r.Group, r.InstanceID), mostColumns), r.WorkerType)) + "\n"
	}
	return text
}

// matters is what of the workers is printed again if it changes.
func (c crew) matters(bool) string {
	now := c.absentText()
	for _, w := range c.workers {
		now += fmt.Sprintln(w.WorkerType, w.ID, string(w.Standing), w.Effective, w.Why, w.Ineligible, w.Missed, w.Failures)
	}
	return now
}

// noteOf is why a worker is in its state, and what sets it apart.
func noteOfWorker(w workerlease.Candidate, at time.Time) string {
	var notes []string
	add := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	if w.Standing == workerlease.Gone {
		switch { // SEEN says how long ago it was seen.
		case at.After(w.Next):
			add("overdue by " + brief(max(at.Sub(w.Next).Truncate(time.Second), time.Second)))
		case workerlease.IsPresent(w.Presence, at):
			add("fell silent at the end of its lease")
		}
		if w.Holds {
			add("its lease is in force")
		}
	}
	add(w.Ineligible)
	back := w.StepsBackUntil.After(at)
	if !back && w.Phase != store.PhaseStepping {
		add(w.Why)
	}
	failed := ""
	switch {
	case w.Failures == 1:
		failed = "failed in 1 slot"
	case w.Failures > 1:
		failed = fmt.Sprintf("failed in %d slots in a row", w.Failures)
	}
	if back {
		failed += ", goes last until " + timeStyle{whole: true}.text(w.StepsBackUntil, at)
	}
	add(strings.TrimPrefix(failed, ", "))
	if w.Present {
		add(w.Missed)
	}
	for _, name := range sortedLabels(w.Labels) {
		add(name + "=" + w.Labels[name])
	}
	return strings.Join(notes, "; ")
}

func sortedLabels(labels map[string]string) (names []string) {
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var workerColours = map[workerlease.Standing]table.Colour{
	workerlease.Holds: table.Green, workerlease.Unfit: table.Yellow, workerlease.Gone: table.Red, workerlease.Steps: table.Yellow, workerlease.Left: table.Faint,
}

// drawing is the table with its title.
func (c crew) drawing(colours, framed bool) string {
	text := "no workers are known\n"
	if len(c.workers) > 0 {
		text = strings.Join(table.Lines(c.rows(), nil, colours), "\n") + "\n"
	}
	text += c.absentText()
	subject := "workers of all types"
	if c.workerType != "" {
		subject = "workers of " + display.Flat(c.workerType)
	}
	return c.framed(subject, text, framed)
}

// rows are those of the table. Columns without anything to show are left out.
func (c crew) rows() [][]table.Cell {
	var texts [][]string
	for _, w := range c.workers {
		priority := fmt.Sprint(w.Priority)
		if w.Effective != w.Priority {
			priority = fmt.Sprintf("%d, now %d", w.Priority, w.Effective)
		}
		score := ""
		if w.Score != nil {
			score = fmt.Sprintf("%.2f", *w.Score)
		}
		texts = append(texts, []string{w.WorkerType, w.InstanceID, w.Host, string(w.Standing), priority, score, clockOf(w), ago(c.at.Sub(w.Seen)), JobText(w.Job), noteOfWorker(w, c.at)})
	}
	elsewhere := func(w workerlease.Candidate) bool { return w.Host != c.workers[0].Host }
	return grid([]column{
		{name: "WORKER TYPE", hidden: c.workerType != ""},
		{name: "INSTANCE"},
		{name: "HOST", hidden: !slices.ContainsFunc(c.workers, elsewhere)},
		{name: "STATE", colour: func(_ int, state string) table.Colour { return workerColours[workerlease.Standing(state)] }},
		{name: "PRIO"},
		{name: "SCORE", right: true},
		{name: "CLOCK", right: true},
		{name: "SEEN", right: true},
		{name: "JOB"},
		{name: "NOTE", colour: always(table.Faint), blank: true},
	}, texts)
}

// clockOf is how far a worker's time of day is from store time.
func clockOf(w workerlease.Candidate) string {
	sign := "+"
	if w.Offset < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s%s ±%s", sign, brief(w.Offset.Abs()), brief(w.Uncertainty.Abs()))
}

// brief is a duration to as many digits as matter.
func brief(d time.Duration) string { return display.Brief(d) }

// ago is how long ago something was.
func ago(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return brief(d.Truncate(time.Second)) + " ago"
}
