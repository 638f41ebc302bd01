package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// clockOff is how far a worker's time of day may be from store time without a warning. No lease depends on it, but
// what the worker writes into logs does.
const clockOff = 5 * time.Second

// warn notes what an operator should look at.
func (t *typeStatus) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// notes are the note and the warnings in one text.
func (t typeStatus) notes() string {
	all := t.warnings
	if t.note != "" {
		all = append([]string{t.note}, all...)
	}
	return strings.Join(all, "; ")
}

// take counts the workers of a type, and finds what is odd about them.
func (t *typeStatus) take(crew []store.Presence, roster bool, now time.Time) {
	holder, off := false, 0
	worst := store.Presence{}
	var there []store.Presence
	for _, p := range crew {
		present := workerlease.IsPresent(p, now)
		switch {
		case present:
			t.present++
		case p.Phase != store.PhaseStopped:
			t.gone++
		}
		if !present {
			continue
		}
		r := t.holder.Record
		holder = holder || p.Group == r.Group && (r.Group != "" || p.InstanceID == r.InstanceID)
		there = append(there, p)
		if p.Offset.Abs() > clockOff {
			off++
			if p.Offset.Abs() > worst.Offset.Abs() {
				worst = p
			}
		}
	}
	if t.last.State == history.Failed {
		t.warn("the last slot failed%s", outcomeOf(t.last))
	}
	if t.holder.State != "" && roster && len(crew) > 0 && !holder {
		t.warn("%s holds, and isn't there by the roster", holderOf(t.holder))
	}
	if names := t.schedules(there); len(names) > 1 {
		t.warn("schedules differ: %s", listed(names))
	}
	switch {
	case off == 1:
		t.warn("the time of day of %s is off by %s", worst.InstanceID, brief(worst.Offset.Abs()))
	case off > 1:
		t.warn("the times of day of %d workers are off, by up to %s", off, brief(worst.Offset.Abs()))
	}
}

// schedules are those of the newest records and of the workers that are there, in order.
func (t typeStatus) schedules(there []store.Presence) (names []string) {
	texts := []string{t.schedule}
	for _, p := range there {
		texts = append(texts, p.Schedule)
	}
	for _, text := range texts {
		if name := canonical(text); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// outcomeOf is what is known of work that failed, after a colon.
func outcomeOf(e history.Entry) (text string) {
	o := e.Outcome
	switch {
	case !e.OutcomeKnown:
		return ""
	case o.Exited:
		text = fmt.Sprintf(": exit code %d", o.ExitCode)
	case o.Error != "":
		text = ": " + display.Clip(display.Line(o.Error), mostColumns)
	}
	if o.GivenUp {
		text += ", given up"
	}
	return text
}

// canonical is a schedule in the form in which equal ones are equal texts; empty if it can't be read.
func canonical(text string) string {
	schedule, err := slots.Parse(text)
	if err != nil {
		return ""
	}
	return schedule.String()
}

// twins are, of names that differ by their case only, each with another of them.
func twins(names []string) map[string]string {
	first, twin := map[string]string{}, map[string]string{}
	for _, name := range names {
		folded := strings.ToLower(name)
		if other, ok := first[folded]; ok {
			twin[name] = other
			if twin[other] == "" {
				twin[other] = name
			}
			continue
		}
		first[folded] = name
	}
	return twin
}
