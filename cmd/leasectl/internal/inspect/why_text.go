package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
	"github.com/slotlease/slotlease/workerlease/history"
)

// drawing is the answer in sentences: who had the slot, then each worker.
func (a answer) drawing(colours, _ bool) string {
	var b strings.Builder
	b.WriteString(titled("worker type "+display.Flat(a.workerType), display.Flat(a.store), a.at) + "\n\n")
	paragraph := func(colour table.Colour, indent, text string) {
		for i, line := range wrapped(display.Line(text), a.width-len(indent)) {
			if i == 0 {
				line = table.Paint(colours, colour, line)
			}
			b.WriteString(indent + line + "\n")
		}
	}
	for _, text := range a.whoHad() {
		paragraph(table.Plain, "", text)
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
	if cost := charges.Text(a.charges); cost != "" {
		b.WriteString("\nlooking at it cost " + cost + "\n")
	}
	return b.String()
}

// wrapped are the lines of a text, of at most so many columns but for longer words.
func wrapped(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && display.Width(line)+1+display.Width(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

func colourOf(v explain.Verdict) table.Colour {
	switch v.Reason {
	case explain.Had:
		return table.Green
	case explain.Absent, explain.Stopped, explain.Unreachable, explain.Refused, explain.Poisoned:
		return table.Red
	case explain.NotEligible, explain.ClockUnfit, explain.Paused, explain.Drained, explain.Overran, explain.SteppedBack, explain.OtherSchedule, explain.TooLate:
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
	return fmt.Sprintf("the slot from %s to %s", a.clock(a.Slot.Start), timeStyle{whole: a.Slot.End.Nanosecond() == 0}.text(a.Slot.End, a.Slot.Start))
}

// whoHad are the sentences on who had the slot.
func (a answer) whoHad() (lines []string) {
	switch {
	case a.empty:
		return []string{"There are no records of this worker type yet: no worker has ever claimed a slot."}
	case a.Unread:
		return []string{fmt.Sprintf("Who had it at %s isn't known: the records of the ledger begin later, or older ones have been trimmed.", a.clock(a.At))}
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
		return []string{fmt.Sprintf("Nobody has claimed %s yet. Claims open shortly before it begins, by default 10s, or a quarter of a slot if that is less.", a.slot())}
	case len(a.Terms) == 0:
		return a.nobody()
	}
	for i, t := range a.Terms {
		lines = append(lines, a.term(t, i == 0))
	}
	if a.Holder == nil && a.When != explain.Future {
		lines = append(lines, fmt.Sprintf("At %s nobody had it.", a.clock(a.At)))
		for _, o := range a.InForce {
			switch o.Kind {
			case store.OrderPause:
				lines = append(lines, fmt.Sprintf("The worker type %s %s.", a.is(), a.order(o)))
			case store.OrderDrain:
				lines = append(lines, a.drained(o))
			case store.OrderRelease:
				if of := func(t history.Entry) bool { return t.Record.Claim == o.Target }; slices.ContainsFunc(a.Terms, of) {
					text := fmt.Sprintf("%s asked its holder at %s to release it", cmp.Or(o.By, "An operator"), a.second(o.At))
					lines = append(lines, strings.TrimSuffix(text+": "+o.Why, ": ")+".")
				}
			case store.OrderPrefer: // It keeps nobody from claiming.
			}
		}
	}
	return lines
}

// term says who had a slot, since when, and how that ended.
func (a answer) term(t history.Entry, first bool) string {
	verb, holder, slot := "had", t.Record.InstanceID, a.slot()
	if t.Record.Group != "" {
		holder = fmt.Sprintf("Group %s (%s)", t.Record.Group, t.Record.InstanceID)
	}
	switch {
	case t.State == history.Upcoming:
		verb = "has claimed"
	case t.InForce(a.at):
		verb = "has"
	}
	if !first {
		holder, slot = "Then "+holder, "it"
	}
	text := fmt.Sprintf("%s %s %s, with priority %d.", holder, verb, slot, t.Record.Priority)
	switch late := t.Late(); {
	case t.Takeover:
		text += fmt.Sprintf(" It took over what was left of it, from %s.", a.clock(t.Window.Start))
	case t.Record.Token < t.Slot.Start.UnixMilli():
		text += fmt.Sprintf(" Its lease went on from the slot before: it began at %s.", a.second(store.FromMillis(t.Record.Token)))
	case t.ClaimKnown && t.Claimed < 0:
		text += fmt.Sprintf(" It claimed it %s before it began.", brief(-t.Claimed))
	case t.ClaimKnown:
		text += fmt.Sprintf(" It claimed it late, %s after it had begun.", brief(t.Claimed))
	case late > 0:
		text += fmt.Sprintf(" It had it from %s.", a.clock(t.Window.Start))
	}
	return text + a.ending(t)
}

// ending says how a lease ended, and what came of the work.
func (a answer) ending(t history.Entry) (text string) {
	switch {
	case !t.OverriddenAt.IsZero():
		text = fmt.Sprintf(" An operator ended its lease at %s.", a.clock(t.OverriddenAt))
	case !t.ReleasedAt.IsZero() && t.State == history.Upcoming, !t.ReleasedAt.IsZero() && !t.ReleasedAt.After(t.Window.Start.Add(time.Millisecond)):
		text = " It gave it back before it began."
	case !t.ReleasedAt.IsZero():
		text = fmt.Sprintf(" It gave back the rest at %s.", a.clock(t.ReleasedAt))
	case t.InForce(a.at) && !a.at.Before(t.Window.Start):
		text = fmt.Sprintf(" Its lease lasts until %s.", a.clock(t.Window.End))
	case t.Window.End.Before(t.Slot.End) && t.State != history.Done: // Who is done extends no more.
		text = fmt.Sprintf(" Its lease ended at %s: it had not extended it.", a.clock(t.Window.End))
	}
	switch {
	case t.OutcomeKnown && t.Outcome.Result == store.Failed && t.Outcome.Exited:
		text += fmt.Sprintf(" Its work failed with exit code %d%s.", t.Outcome.ExitCode, givenUp(t.Outcome))
	case t.OutcomeKnown && t.Outcome.Result == store.Failed && t.Outcome.Error == "":
		text += " Its work failed" + givenUp(t.Outcome) + "."
	case t.OutcomeKnown && t.Outcome.Result == store.Failed:
		text += " Its work failed" + givenUp(t.Outcome) + ": " + strings.TrimSuffix(t.Outcome.Error, ".") + "."
	case t.State == history.Done && !t.DoneAt.IsZero():
		text += fmt.Sprintf(" The work was done at %s.", a.clock(t.DoneAt))
	case t.State == history.Done:
		text += " The work is done."
	}
	return text
}

// givenUp says of failed work that nobody tries it again.
func givenUp(o store.Outcome) string {
	if o.GivenUp {
		return ", and was given up: that was the last attempt"
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
	if a.GapSlots > 1 {
		text += fmt.Sprintf(", nor the others of the %d slots in a row from %s to %s", a.GapSlots, a.clock(a.Gap.Start), a.clock(a.Gap.End))
	}
	lines = append(lines, text+".")
	if a.Done {
		lines = append(lines, "Its work was made up for later.")
	}
	for _, c := range a.Nobody {
		lines = append(lines, a.cause(c))
	}
	return lines
}

// cause is a reason why nobody had the slot, in words.
func (a answer) cause(c explain.Cause) string {
	who := listed(c.Workers)
	switch c.Reason {
	case explain.Paused:
		if a.When == explain.Now {
			return "The worker type is " + a.order(*c.Order) + "."
		}
		return "The worker type was " + a.order(*c.Order) + "."
	case explain.Poisoned:
		if c.Record.Seq != 0 {
			text := fmt.Sprintf("Record %d kept workers from claiming: %s.", c.Record.Seq, c.Detail)
			if a.When == explain.Now {
				text += " leasectl doctor says what to do."
			}
			return text
		}
		return fmt.Sprintf("A record that can't be obeyed kept %s from claiming.", who)
	case explain.Unreachable:
		return fmt.Sprintf("The store could not be reached, says %s.", who)
	case explain.Refused:
		return fmt.Sprintf("The store refused claims, says %s.", who)
	case explain.Overran:
		return fmt.Sprintf("The code of %s had not returned from an earlier slot.", who)
	case explain.ClockUnfit:
		return fmt.Sprintf("%s didn't know the store's time.", who)
	case explain.NotEligible:
		return fmt.Sprintf("%s found itself not eligible.", who)
	case explain.TooLate:
		return fmt.Sprintf("%s came too late, or was paused.", who)
	case explain.Drained:
		if c.Order == nil {
			return fmt.Sprintf("The host of %s %s drained.", who, a.is())
		}
		return a.drained(*c.Order) + fmt.Sprintf(" It kept %s from claiming.", who)
	case explain.NobodyThere:
		return fmt.Sprintf("No worker of the roster %s there.", a.is())
	default:
		return "Why isn't known: neither the records nor the roster say."
	}
}

// is is the verb for what is so, or was.
func (a answer) is() string {
	if a.When == explain.Past {
		return "was"
	}
	return "is"
}

// drained says who drained a host.
func (a answer) drained(o store.Order) string {
	return fmt.Sprintf("Host %s %s drained%s.", o.Target, a.is(), a.given(o))
}

// order is an order of an operator in words.
func (a answer) order(o store.Order) (text string) {
	switch o.Kind {
	case store.OrderPause:
		text = "paused"
	case store.OrderPrefer:
		text = "told to prefer " + o.Target
	case store.OrderDrain:
		text = "told to drain host " + o.Target
	case store.OrderRelease:
		text = "told to release"
	default:
		text = string(o.Kind)
	}
	return text + a.given(o)
}

// given is who gave an order, when, until when and why.
func (a answer) given(o store.Order) (text string) {
	if o.By != "" {
		text = " by " + o.By
	}
	text += fmt.Sprintf(" at %s, until %s", a.second(o.At), a.second(o.Until))
	if o.Why != "" {
		text += ": " + o.Why
	}
	return text
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
	case !a.roster:
		return "The roster has no worker of the type: of the workers, only those that had the slot are known."
	case uncertain && a.When == explain.Past:
		return "The ledger keeps the claims of those that won, and the roster the newest word of each worker alone: what the others did in older slots isn't known."
	}
	return ""
}
