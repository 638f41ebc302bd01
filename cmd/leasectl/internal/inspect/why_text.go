package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
	"github.com/slotlease/slotlease/workerlease/history"
)

// drawing is the answer in sentences: who had the slot, then each worker.
func (a answer) drawing(colours, _ bool) string {
	var b strings.Builder
	paragraph := func(colour table.Colour, indent, text string) {
		for i, line := range display.Wrapped(display.Line(text), a.width-len(indent)) {
			if i == 0 {
				line = table.Paint(colours, colour, line)
			}
			b.WriteString(indent + line + "\n")
		}
	}
	for _, text := range a.whoHad() {
		paragraph(table.Plain, "", text)
	}
	for _, t := range a.Terms {
		if text := written(t); text != "" {
			b.WriteString("\n")
			paragraph(table.Plain, "", fmt.Sprintf("Its run under %s wrote at its end:", t.Record.InstanceID))
			b.WriteString(text)
		}
	}
	for _, s := range a.said() {
		b.WriteString("\n")
		paragraph(colourOf(s.of), "", s.whose())
		paragraph(table.Plain, "  ", s.text)
	}
	if text := a.unknown(); text != "" {
		b.WriteString("\n")
		paragraph(table.Faint, "", text)
	}
	return a.framed("worker type "+display.Flat(a.workerType), b.String(), false)
}

func colourOf(v explain.Verdict) table.Colour {
	switch v.Reason {
	case explain.Had:
		return table.Green
	case explain.Absent, explain.Stopped, explain.Unreachable, explain.Refused, explain.Poisoned, explain.WentBack:
		return table.Red
	case explain.NotEligible, explain.ClockUnfit, explain.Paused, explain.Drained, explain.Overran, explain.StillRunning, explain.SteppedBack, explain.OtherSchedule, explain.TooLate:
		return table.Yellow
	default:
		return table.Cyan
	}
}

// nameOf is a worker with its group.
func nameOf(v explain.Verdict) string {
	if v.Group != "" {
		return v.InstanceID + " of group " + v.Group
	}
	return v.InstanceID
}

// clock is a time, with its date unless it is of today.
func (a answer) clock(t time.Time) string {
	return timeStyle{whole: t.Nanosecond() == 0}.text(t, a.at)
}

// second is clock to whole seconds.
func (a answer) second(t time.Time) string { return timeStyle{whole: true}.text(t, a.at) }

// slot is the slot in words.
func (a answer) slot() string {
	return fmt.Sprintf("the slot from %s%s to %s", a.clock(a.Slot.Start), beside(a.Slot.Start, a.zone, true), timeStyle{whole: a.Slot.End.Nanosecond() == 0}.text(a.Slot.End, a.Slot.Start))
}

// apart says that workers which are there have different schedules; it is empty if they don't. With records, each worker
// is told by those.
func (a answer) apart() string {
	var there []store.Presence
	for _, v := range a.Workers {
		if v.InRoster && v.Standing.There() {
			there = append(there, v.Presence)
		}
	}
	names := typeStatus{}.schedules(there, a.at)
	if len(names) < 2 {
		return ""
	}
	return fmt.Sprintf("The schedules of its workers differ: %s. So each claims slots of its own: %s.", listed(names), advice.OneSchedule(names))
}

// whoHad are the sentences on who had the slot.
func (a answer) whoHad() (lines []string) {
	switch {
	case a.empty:
		lines = []string{"There are no records of this worker type: no worker has claimed a slot yet, or the store has lost them. A run --once that could begin nothing leaves none: its log says why."}
		if len(a.saysLost) > 0 {
			lines = []string{fmt.Sprintf("There are no records of this worker type: the store has lost them, according to %s. Nothing is claimed until all is over that may have been granted by what is lost.", listed(a.saysLost))}
		}
		if text := a.apart(); text != "" {
			lines = append(lines, text)
		}
		return lines
	case a.Unread:
		lines = append([]string{fmt.Sprintf("Who had it at %s isn't known: the records of the ledger begin later, or older ones have been trimmed, or lost.", a.clock(a.At))}, a.lost()...)
		if !a.ahead.IsZero() {
			lines = append(lines, fmt.Sprintf("The newest record was written at %s by the store's clock, which is yet to come: that was set back since, most likely. leasectl doctor looks at it.", a.clock(a.ahead)))
		}
		return lines
	case a.Slot.IsZero():
		lines = []string{fmt.Sprintf("Which slot %s is in isn't known: neither the records nor the roster name a schedule that can be read.", a.clock(a.At))}
		for _, o := range a.Orders {
			verb := "is"
			if a.At.Before(a.at) {
				verb = "was"
			}
			lines = append(lines, fmt.Sprintf("The worker type %s %s.", verb, a.order(o)))
		}
		return lines
	case len(a.Terms) == 0 && a.When == explain.Future:
		text := fmt.Sprintf("Nobody has claimed %s yet.", a.slot())
		if slices.ContainsFunc(a.InForce, func(o store.Order) bool { return o.Kind == store.OrderPause }) {
			return append([]string{text}, a.ordered()...)
		}
		return []string{text + " Claims open shortly before it begins, by default 10s, or a quarter of a slot if that is less."}
	case len(a.Terms) == 0:
		return slices.Concat(a.nobody(), a.lost(), a.elsewhere())
	}
	if o := a.Terms[0].Order; o != nil && o.Kind == store.OrderTrigger {
		lines = append(lines, fmt.Sprintf("This run is none of the schedule: it was %s.", a.order(*o)))
	}
	for i, t := range a.Terms {
		lines = append(lines, a.term(t, i == 0))
	}
	lines = append(append(lines, a.lost()...), a.elsewhere()...)
	if a.Holder == nil && a.When != explain.Future && !a.Done && !a.isLost() {
		lines = append(append(lines, fmt.Sprintf("At %s nobody had it.", a.clock(a.At))), a.ordered()...)
	}
	return lines
}

// elsewhere says who held the lease for another slot at the time that is asked about.
func (a answer) elsewhere() []string {
	h := a.Holder
	if h == nil || h.Slot == a.Slot || a.Skipped != nil {
		return nil
	}
	return []string{fmt.Sprintf("At %s %s had the lease for the job of the slot from %s, late.", a.clock(a.At), holderOf(*h), a.clock(h.Slot.Start))}
}

// running says who ran the job of which slot, and since when.
func (a answer) running(of history.Entry) string {
	who, verb := holderOf(of), "ran"
	if host := of.Record.Worker.Host; host != "" {
		who += " on host " + host
	}
	if a.When == explain.Now && a.Holder != nil {
		verb = "runs"
	}
	if of.Record.Triggered() {
		return fmt.Sprintf("%s still %s what a trigger of %s asked for, since %s.", who, verb, a.second(of.RunsFor.Start), a.second(of.RunsSince))
	}
	return fmt.Sprintf("%s still %s the job of the slot from %s, since %s.", who, verb, a.clock(of.RunsFor.Start), a.second(of.RunsSince))
}

// term says who had a slot, since when, and how that ended.
func (a answer) term(t history.Entry, first bool) string {
	verb, holder, slot := "had", t.Record.InstanceID, a.slot()
	if a.Triggered {
		slot = "the run"
	}
	if t.Record.Group != "" {
		holder = fmt.Sprintf("Group %s (%s)", t.Record.Group, t.Record.InstanceID)
	}
	switch {
	case t.State == history.Upcoming:
		verb = "has claimed"
	case t.Holds(a.at):
		verb = "has"
	}
	if !first {
		holder, slot = "Then "+holder, "it"
	}
	text := fmt.Sprintf("%s %s %s, with priority %d.", holder, verb, slot, t.Record.Priority)
	switch late := t.Late(); {
	case t.CaughtUp():
		text += fmt.Sprintf(" It was late: the slot was over, and it had it from %s.", a.clock(t.Window.Start))
	case a.Triggered:
		text += fmt.Sprintf(" It began at %s.", a.clock(t.Window.Start))
	case t.Takeover:
		text += fmt.Sprintf(" It took over what was left of it, from %s.", a.clock(t.Window.Start))
	case t.Record.Token < t.Slot.Start.UnixMilli():
		text += fmt.Sprintf(" Its lease went on from the slot before: it began at %s.", a.second(store.FromMillis(t.Record.Token)))
	case t.ClaimKnown && t.Claimed < 0:
		text += fmt.Sprintf(" It claimed it %s before it began.", brief(-t.Claimed))
	case t.ClaimKnown && t.Claimed >= time.Millisecond:
		text += fmt.Sprintf(" It claimed it late, %s after it had begun.", brief(t.Claimed))
	case late > 0:
		text += fmt.Sprintf(" It had it from %s.", a.clock(t.Window.Start))
	}
	if ours, differs := history.OtherSlot(t.Record); differs {
		text += fmt.Sprintf(" By the tz database of this program, its schedule, %q, has the slot from %s to %s: the releases of the two differ.", t.Record.Schedule, a.clock(ours.Start), a.clock(ours.End))
	}
	return text + a.asked(t) + a.ending(t)
}

// ending says how a lease ended, and what came of the work.
func (a answer) ending(t history.Entry) (text string) {
	switch {
	case !t.OverriddenAt.IsZero():
		text = fmt.Sprintf(" An operator ended its lease at %s.", a.clock(t.OverriddenAt))
	case !t.ReleasedAt.IsZero() && t.State == history.Upcoming, !t.ReleasedAt.IsZero() && !t.ReleasedAt.After(t.Window.Start.Add(time.Millisecond)):
		text = " It gave it back before it began."
	case t.Unbegun:
		text = " It began nothing: it learned too late that it had it, or could not begin."
	case !t.ReleasedAt.IsZero():
		text = fmt.Sprintf(" It gave back the rest at %s.", a.clock(t.ReleasedAt))
	case t.Holds(a.at):
		text = fmt.Sprintf(" Its lease lasts until %s.", a.clock(t.Window.End))
	case a.losesAfter(t):
		return fmt.Sprintf(" What came of it after %s isn't known: the store has lost that.", a.clock(t.Window.End))
	case t.Window.End.Before(t.Slot.End) && t.State != history.Done: // Who is done extends no more.
		text = fmt.Sprintf(" Its lease ended at %s: it had not extended it.", a.clock(t.Window.End))
	case t.State == history.Expired:
		text = " It had it to its end."
	}
	if over := t.Overran(a.at); over > 0 {
		text += fmt.Sprintf(" Its job ran on after its slot, for %s.", lasted(over))
	}
	return text + a.work(t)
}

// lasted is how long something took, cut as inspect slots cuts it.
func lasted(d time.Duration) string {
	switch {
	case d < time.Second:
		return brief(d.Truncate(time.Millisecond))
	case d < 10*time.Second:
		return brief(d.Truncate(100 * time.Millisecond))
	}
	return brief(d.Truncate(time.Second))
}

// work says what came of the work of a slot.
func (a answer) work(t history.Entry) string {
	failed, givenUp := t.OutcomeKnown && t.Outcome.Result == store.Failed, ""
	if t.Outcome.GivenUp {
		givenUp = fmt.Sprintf(", and was given up: attempt %d was the last", t.Outcome.Attempt)
	}
	switch {
	case t.Cause == store.WorkerDied:
		return " Its worker died, without a word on its work" + givenUp + "."
	case t.Silent():
		return " Its worker fell silent: it died, stood still, or couldn't reach the store."
	case t.OutcomeKnown && t.Cause != "":
		after := ""
		if took, ok := t.Outcome.Took(); ok {
			after = " after " + lasted(took)
		}
		return fmt.Sprintf(" Its work failed: %s%s%s%s.", t.Cause, after, givenUp, Spared(t.Cause))
	case failed && t.Outcome.Exited:
		return fmt.Sprintf(" Its work failed with exit code %d%s.", t.Outcome.ExitCode, givenUp)
	case failed && t.Outcome.Error == "":
		return " Its work failed" + givenUp + "."
	case failed:
		return " Its work failed" + givenUp + ": " + strings.TrimSuffix(t.Outcome.Error, ".") + "."
	case t.State == history.Done && !t.DoneAt.IsZero():
		return fmt.Sprintf(" The work was done at %s.", a.clock(t.DoneAt))
	case t.State == history.Done:
		return " The work is done."
	}
	return ""
}

// nobody says why nobody had the slot.
func (a answer) nobody() (lines []string) {
	verb := "had"
	if a.When == explain.Now {
		verb = "has"
	}
	text := fmt.Sprintf("Nobody %s %s", verb, a.slot())
	if len(a.Lost) > 0 {
		text = "No record that is left says who had " + a.slot()
	}
	if a.GapSlots > 1 {
		text += fmt.Sprintf(", nor the others of the %d slots in a row from %s to %s", a.GapSlots, a.clock(a.Gap.Start), a.clock(a.Gap.End))
	}
	lines = append(lines, text+".")
	if a.Done {
		lines = append(lines, "Its work was made up for later.")
	}
	for _, c := range a.Nobody {
		if c.Reason != explain.Unknown || len(a.Lost) == 0 {
			lines = append(lines, a.cause(c))
		}
	}
	return lines
}

// causes are the reasons why nobody had a slot that need no more than the names of the workers that say so.
var causes = map[explain.Reason]string{
	explain.WentBack:    "The store had lost records, or might have, and another worker might still have worked by them.",
	explain.Unreachable: "The store could not be reached, says WHO.",
	explain.Refused:     "The store refused claims, says WHO.",
	explain.Overran:     "The code of WHO had not returned from an earlier slot.",
	explain.ClockUnfit:  "WHO didn't know the store's time.",
	explain.NotEligible: "WHO found itself not eligible.",
	explain.TooLate:     "WHO came too late, or was paused.",
	explain.NobodyThere: "No worker of the roster was there in time.",
}

// cause is a reason why nobody had the slot, in words.
func (a answer) cause(c explain.Cause) string {
	who := listed(c.Workers)
	switch c.Reason {
	case explain.Paused:
		return "The worker type " + a.isBy(*c.Order) + " " + a.order(*c.Order) + "."
	case explain.StillRunning:
		text := a.running(*a.Skipped)
		if r := a.Ran; r != nil && r.Cause == store.WorkerDied {
			text += fmt.Sprintf(" Its worker died in it, without a word: its lease ended at %s.", a.clock(r.Window.End))
		}
		return text
	case explain.Poisoned:
		if c.Record.Seq != 0 {
			text := fmt.Sprintf("Record %d kept workers from claiming: %s.", c.Record.Seq, c.Detail)
			if a.When == explain.Now {
				text += " leasectl doctor says what to do."
			}
			return text
		}
		return fmt.Sprintf("A record that can't be obeyed kept %s from claiming.", who)
	case explain.Drained:
		if c.Order == nil {
			return fmt.Sprintf("The host of %s %s drained.", who, a.is())
		}
		return a.drained(*c.Order) + fmt.Sprintf(" It kept %s from claiming.", who)
	default:
		text := cmp.Or(causes[c.Reason], "Why isn't known: neither the records nor the roster say.")
		return strings.ReplaceAll(text, "WHO", who)
	}
}

// is is the verb for what is so, or was.
func (a answer) is() string {
	if a.When == explain.Past {
		return "was"
	}
	return "is"
}

// unknown says what nobody can know.
func (a answer) unknown() string {
	uncertain := false
	for _, v := range a.Workers {
		uncertain = uncertain || v.Reason != explain.Had && !v.Certain
	}
	switch {
	case a.empty || a.Unread:
		return ""
	case a.unlisted != nil:
		return "The workers can't be listed: of them, only those that had the slot are known."
	case !a.roster:
		return "The roster has no worker of the type: of the workers, only those that had the slot are known."
	case uncertain && a.When == explain.Past:
		return "The ledger keeps the claims of those that won, and the roster the newest word of each worker alone: what the others did in older slots isn't known."
	}
	return ""
}
