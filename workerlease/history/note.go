package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Note is a short remark for people, in English, or "": which part of the slot the lease
// had if not all of it, what came of the work, when it was released, overridden or done, how many slots were
// missed, why the record is poison, or until when nothing can be claimed. Its wording may change; programs read the fields.
func (e Entry) Note() string {
	text := e.note()
	if e.BlocksUntil.IsZero() {
		return text
	}
	blocked := "nothing to claim until " + store.Format(e.BlocksUntil)
	if text != "" {
		text += ", "
	}
	return text + blocked
}

func (e Entry) note() string {
	switch {
	case e.State == Poison:
		return e.Defect
	case e.Count > 1 && e.More:
		return fmt.Sprintf("and more: only %d were counted; %d slots", MaxMissed, e.Count)
	case slices.Contains([]State{Missed, Skipped, Free}, e.State):
		return e.unclaimedNote()
	case e.State == Done:
		return e.part(e.DoneAt)
	case e.State == Released && !e.ReleasedAt.After(e.Window.Start.Add(time.Millisecond)):
		return "before it began"
	case e.State == Released && e.Unbegun:
		return strings.TrimPrefix(e.part(time.Time{})+", never begun", ", ")
	case e.State == Released:
		return e.part(e.ReleasedAt)
	case e.State == Overridden:
		return e.part(e.OverriddenAt)
	case e.State == Failed:
		return e.part(time.Time{})
	case e.Record.Kind == store.KindGrant:
		return e.part(time.Time{})
	case e.Record.Kind == store.KindOrder:
		if o, ok := e.Record.Order(); ok {
			return o.String()
		}
		return e.Record.Metadata
	case e.Record.Kind == store.KindOverride && e.Record.Metadata == "":
		return "as of " + store.Format(e.Window.Start)
	case e.Record.Kind == store.KindOverride:
		return "as of " + store.Format(e.Window.Start) + ": " + e.Record.Metadata
	}
	return said(e.Record)
}

// said is what a record says besides.
func said(r store.Record) string {
	if l, is := r.Lost(); is {
		return fmt.Sprintf("the store has lost record %d, of %q", l.Seq, l.InstanceID)
	}
	return r.Metadata
}

// unclaimedNote says of a slot that nobody claimed how many there are, and why.
func (e Entry) unclaimedNote() string {
	var words []string
	if e.Count > 1 {
		words = append(words, fmt.Sprintf("%d slots", e.Count))
	}
	switch {
	case e.State == Skipped:
		words = append(words, "still running since "+e.RunsSince.UTC().Format(time.RFC3339))
	case !e.RunsFor.Start.IsZero():
		words = append(words, "overrun: a worker died in its run since "+e.RunsSince.UTC().Format(time.RFC3339))
	case e.Order != nil:
		words = append(words, e.Order.String())
	}
	return strings.Join(words, ", ")
}

// part notes from when the lease had the slot, up to when, what came of the work, and when it was
// released, overridden or done.
func (e Entry) part(at time.Time) string {
	var words []string
	if late := e.Late(); late > 0 {
		from := "from "
		if e.Partial {
			from = "from before "
		}
		if e.CaughtUp() {
			from = "late, " + from
		}
		words = append(words, from+Relative(late))
	}
	if (e.State == Expired || e.Silent()) && e.Window.End.Before(e.Slot.End) {
		words = append(words, "to "+Relative(e.Window.End.Sub(e.Slot.Start)))
	}
	text := strings.Join(words, " ")
	if came := e.outcomeNote(); came != "" {
		if text != "" {
			text += ", "
		}
		text += came
	}
	over := ""
	switch by := e.Overran(e.Window.End); {
	case by > 0 && e.State == Held:
		over = "runs on after its slot"
	case by > 0:
		over = duration(by) + " longer than its slot"
	}
	if over != "" {
		text = strings.TrimPrefix(text+", "+over, ", ")
	}
	if at.IsZero() || e.Slot.Start.IsZero() {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "at " + Relative(at.Sub(e.Slot.Start))
}

// Relative is a time relative to a boundary as text, always with its sign: -743ms, -9.2s,
// +1m12s. It is cut to milliseconds below a second, and to tenths below a minute.
func Relative(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%dms", sign, d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%.1fs", sign, d.Truncate(100*time.Millisecond).Seconds())
	}
	return sign + d.Truncate(time.Second).String()
}
