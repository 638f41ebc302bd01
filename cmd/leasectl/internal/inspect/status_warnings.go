package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// clockOff is how far a worker's time of day may be from store time without a warning. No lease depends on it, but
// what the worker writes into logs does.
const clockOff = 5 * time.Second

// mostClocks is how many workers are named whose time of day is off, from the worst on.
const mostClocks = 3

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

// count counts the workers of a type, and returns those that are there, and whether the holder is among them.
func (t *typeStatus) count(crew []store.Presence, now time.Time) (there []store.Presence, holds bool) {
	r := t.holder.Record
	for _, p := range crew {
		standing := workerlease.StandingOf(p, t.rows, now)
		if standing == workerlease.Gone {
			t.gone++
		}
		if standing.There() {
			t.present++
			there = append(there, p)
			holds = holds || p.Group == r.Group && (r.Group != "" || p.InstanceID == r.InstanceID)
		}
	}
	return there, holds
}

// take counts the workers of a type, and finds what is odd about them.
func (t *typeStatus) take(crew []store.Presence, roster bool, now time.Time) {
	there, holds := t.count(crew, now)
	t.job = jobOf(there)
	mayBegin(t.rows, func() []store.Presence { return slices.Clone(crew) }, now)
	if t.job == nil {
		t.passSkipped(now)
	}
	t.warnOfSlots(now)
	if names := SayLost(there, now); len(names) > 0 && t.holder.State == "" {
		if len(t.rows) == 0 {
			t.note = "" // It had slots.
		}
		t.warn("%s: see leasectl doctor", LostText(names))
	}
	if t.holder.State != "" && roster && len(crew) > 0 && !holds {
		t.warn("%s holds, and isn't there by the roster", holderOf(t.holder))
	}
	newest := t.last
	if t.holder.State != "" {
		newest = t.holder
	}
	if ours, differs := history.OtherSlot(newest.Record); differs {
		t.warn("its slot from %s begins at %s by the tz database here: releases differ", store.Format(newest.Record.SlotStart), store.Format(ours.Start))
	}
	if names := t.schedules(there, now); len(names) > 1 {
		t.warn("schedules differ: %s; %s", listed(names), advice.OneSchedule(names))
	}
	t.compareJobs(there)
	off := slices.DeleteFunc(there, func(p store.Presence) bool { return p.Offset.Abs() <= clockOff })
	slices.SortFunc(off, func(a, b store.Presence) int { return cmp.Compare(b.Offset.Abs(), a.Offset.Abs()) })
	var clocks []string
	for _, p := range off[:min(len(off), mostClocks)] {
		clocks = append(clocks, onHost(p)+" is "+way(p.Offset))
	}
	if more := len(off) - len(clocks); more > 0 {
		clocks = append(clocks, fmt.Sprintf("%d more workers is off", more))
	}
	if len(clocks) > 0 {
		t.warn("the time of day of %s", strings.Join(clocks, ", that of "))
	}
}

// onHost names a worker, and its machine.
func onHost(p store.Presence) string {
	if p.Host == "" {
		return p.InstanceID
	}
	return p.InstanceID + " on " + p.Host
}

// way says how a time of day is off.
func way(ahead time.Duration) string {
	if ahead < 0 {
		return brief(ahead.Abs()) + " behind store time"
	}
	return brief(ahead) + " ahead of store time"
}

// warnOfSlots finds what is odd about the newest slots.
func (t *typeStatus) warnOfSlots(now time.Time) {
	second := timeStyle{whole: true}
	failed := t.undone(func(history.Entry) bool { return true })
	t.warnOfFailed(failed, now)
	switch {
	case t.overdue(now) > 0 && t.doneUntil.IsZero():
		t.warn("no success yet, for longer than the schedule allows")
	case t.overdue(now) > 0:
		t.warn("no success since the slot that ended at %s, for longer than the schedule allows", second.text(t.doneUntil, now))
	}
	if e := t.undone(func(e history.Entry) bool { return e.Outcome.GivenUp }); e.State != "" && e.Slot != failed.Slot {
		t.warnOfGivenUp(e, now)
	}
	if n := t.skipped(); n > 1 {
		t.warn("%d slots in a row were skipped: its job takes longer than they last", n)
	}
}

// skipped is how many of the newest slots that began were skipped in a row.
func (t typeStatus) skipped() (n int) {
	for _, e := range slices.Backward(t.rows) {
		switch e.State {
		case history.Skipped:
			n += e.Count
		case history.Upcoming, history.Free:
		default:
			return n
		}
	}
	return n
}

// warnOfFailed says of a slot that its work failed, or that its worker fell silent.
func (t *typeStatus) warnOfFailed(e history.Entry, now time.Time) {
	slot, silent := "the slot from "+timeStyle{whole: true}.text(e.Slot.Start, now), e.State == history.Expired
	if e.Slot == t.last.Slot {
		slot = "the last slot"
	}
	switch present := t.holds(e.Slot) || !e.Outcome.GivenUp && now.Before(e.Slot.End); { // Another attempt may follow.
	case e.State == "":
	case present && silent:
		t.warn("the lease of %s ended early in this slot%s", workedBy(e), outcomeOf(e))
	case present:
		t.warn("the work of %s failed in this slot%s", workedBy(e), outcomeOf(e))
	case silent:
		t.warn("the lease of %s ended early%s", slot, outcomeOf(e))
	case e.Outcome.GivenUp && e.Slot != t.last.Slot:
		t.warnOfGivenUp(e, now)
	default:
		t.warn("%s failed%s", slot, outcomeOf(e))
	}
}

// warnOfGivenUp says of a slot that no attempt at it follows.
func (t *typeStatus) warnOfGivenUp(e history.Entry, now time.Time) {
	t.warn("the slot from %s was given up%s", timeStyle{whole: true}.text(e.Slot.Start, now), strings.Replace(outcomeOf(e), ", given up", "", 1))
}

// undone is the newest slot of a kind that failed, or whose worker fell silent, since one came to something better; its State is
// empty if there is none. Of the holder, its own note says it.
func (t typeStatus) undone(is func(history.Entry) bool) history.Entry {
	for _, e := range slices.Backward(t.rows) {
		lost := e.State == history.Failed || e.State == history.Expired && e.Silent()
		led := e.Attempt == 0 && hasEnded(e) && e.Record.Kind == store.KindGrant // A leader is never done.
		switch {
		case lost && is(e) && (!t.holds(e.Slot) || e.Record.Token != t.holder.Record.Token):
			return e
		case e.State == history.Done, led && !lost && e.State != history.Skipped:
			return history.Entry{}
		}
	}
	return history.Entry{}
}

// Spared says of a cause that the attempt doesn't count; empty if it does.
func Spared(c store.Cause) string {
	if c.Spared() {
		return ", which counts as no attempt"
	}
	return ""
}

// outcomeOf is what is known of work that failed, after a colon.
func outcomeOf(e history.Entry) (text string) {
	o := e.Outcome
	switch {
	case e.Cause == store.WorkerDied:
		text = ": its worker died"
	case e.Silent():
		return ": its worker fell silent"
	case !e.OutcomeKnown:
		return ""
	case o.Cause != "":
		text = ": " + string(o.Cause) + Spared(o.Cause)
	case o.Exited:
		text = fmt.Sprintf(": exit code %d", o.ExitCode)
	case o.Error != "":
		text = ": " + display.Clip(display.Line(o.Error), mostColumns)
	}
	if o.GivenUp {
		text += ", given up"
		if o.Attempt > 0 {
			text += fmt.Sprintf(" at attempt %d", o.Attempt)
		}
	}
	return text
}

// Twins are, of names that differ by their case only, each with another of them.
func Twins(names []string) map[string]string {
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
