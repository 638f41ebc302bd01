package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
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
	ledger := &charges.Ledger{Ledger: l}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
	look := func() (crew, error) {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		found := crew{store: t.Shown, workerType: o.WorkerType}
		stamp, err := ledger.Now(limited)
		if err == nil {
			found.at = stamp.Time
			found.workers, err = client.Candidates(limited, o.WorkerType)
		}
		if err == nil {
			err = found.findHolders(limited, ledger)
		}
		if err == nil && o.WorkerType != "" && len(found.workers) == 0 {
			err = CheckType(limited, ledger, o.WorkerType)
		}
		found.warning, found.charges = storeuri.Warning(l), ledger.Charges()
		return found, advice.ForStore(t, err)
	}
	return glance(ctx, o, s, look)
}

// crew are the workers at a moment.
type crew struct {
	at         time.Time
	store      string
	workerType string // "": all
	workers    []workerlease.Candidate
	absent     []store.Record // grants in force to workers that aren't in the roster
	charges    workerlease.Charges
	warning    string
}

func (c crew) warns() string { return c.warning }

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
		if err != nil {
			return err
		}
		for _, e := range history.Read(records, c.at, nil) {
			if e.State == history.Held || e.State == history.Failed && e.InForce(c.at) {
				c.absent = append(c.absent, e.Record)
			}
		}
	}
	return nil
}

// absentText names the holders that aren't in the roster.
func (c crew) absentText() (text string) {
	for _, r := range c.absent {
		holder := r.InstanceID
		if r.Group != "" {
			holder = r.Group
		}
		text += "\n" + display.Line(fmt.Sprintf("%s holds %s, and isn't in the roster", display.Clip(holder, mostColumns), r.WorkerType)) + "\n"
	}
	return text
}

// matters is what of the workers is printed again if it changes.
func (c crew) matters() string {
	now := c.absentText()
	for _, w := range c.workers {
		now += fmt.Sprintln(w.WorkerType, w.ID, stateOf(w), w.Effective, w.Why, w.Ineligible, w.Missed, w.Failures)
	}
	return now
}

// The states of a worker, besides the phases.
const (
	holds      = "holds"
	ineligible = "not eligible"
	gone       = "gone"
)

// stateOf is what matters most of a worker.
func stateOf(w workerlease.Candidate) string {
	switch {
	case w.Phase == store.PhaseStopped:
		return string(w.Phase)
	case !w.Present:
		return gone
	case w.Holds:
		return holds
	case w.Ineligible != "":
		return ineligible
	}
	switch w.Phase {
	case store.PhaseHolder:
		return string(store.PhaseCandidate) // Its lease has ended since.
	case store.PhaseCandidate, store.PhaseStandby, store.PhaseStepping, store.PhaseStopped:
		return string(w.Phase)
	}
	return fmt.Sprintf("%q", w.Phase) // It is of another version or program, which may call it "holds".
}

// noteOf is why a worker is in its state, and what sets it apart.
func noteOfWorker(w workerlease.Candidate, at time.Time) string {
	var notes []string
	add := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	if w.Holds && !w.Present && w.Phase != store.PhaseStopped {
		add("its lease is in force")
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
	if !w.Holds && w.Present {
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

var workerColours = map[string]table.Colour{
	holds: table.Green, ineligible: table.Yellow, gone: table.Red, string(store.PhaseStepping): table.Yellow, string(store.PhaseStopped): table.Faint,
}

// drawing is the table with its title.
func (c crew) drawing(colours, framed bool) string {
	text := "no workers are known\n"
	if len(c.workers) > 0 {
		text = strings.Join(table.Lines(c.rows(), nil, colours), "\n") + "\n"
	}
	text += c.absentText()
	if framed && c.warning != "" {
		text += "\nwarning: " + display.Line(c.warning) + "\n"
	}
	if cost := charges.Text(c.charges); cost != "" {
		text += "\nlooking at it cost " + cost + "\n"
	}
	subject := "workers of all types"
	if c.workerType != "" {
		subject = "workers of " + display.Flat(c.workerType)
	}
	return titled(subject, display.Flat(c.store), c.at) + "\n\n" + text
}

// rows are those of the table. Columns without anything to show are left out.
func (c crew) rows() [][]table.Cell {
	head := []string{"WORKER TYPE", "INSTANCE", "HOST", "STATE", "PRIO", "SCORE", "CLOCK", "SEEN", "NOTE"}
	shown := make([]bool, len(head))
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
		row := []string{w.WorkerType, w.InstanceID, w.Host, stateOf(w), priority, score, clockOf(w), ago(c.at.Sub(w.Seen)), noteOfWorker(w, c.at)}
		for i, text := range row {
			shown[i] = shown[i] || text != ""
		}
		texts = append(texts, row)
	}
	shown[0] = c.workerType == ""
	elsewhere := func(w workerlease.Candidate) bool { return w.Host != c.workers[0].Host }
	shown[2] = slices.ContainsFunc(c.workers, elsewhere)
	rows := make([][]table.Cell, len(texts)+1)
	for i, name := range head {
		if !shown[i] {
			continue
		}
		right := name == "SCORE" || name == "CLOCK" || name == "SEEN"
		rows[0] = append(rows[0], table.Cell{Text: name, Colour: table.Faint, Right: right})
		for n, row := range texts {
			cell := table.Cell{Text: display.Clip(display.Line(row[i]), mostColumns), Right: right}
			switch {
			case name == "STATE":
				cell.Colour = workerColours[row[i]]
			case name == "NOTE":
				cell.Colour = table.Faint
			case cell.Text == "":
				cell.Text = table.None
			}
			rows[n+1] = append(rows[n+1], cell)
		}
	}
	return rows
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
