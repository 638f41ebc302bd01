package inspect

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// tableLines are the table with its heading. To fit a terminal of 80 columns it leaves out
// the date if all rows are of today, and the columns of groups and notes without any, and
// of attempts without a second one.
func (s snapshot) tableLines(colours bool) []string {
	times := s.timeStyle()
	var texts [][]string
	again := false
	for _, e := range s.rows {
		row := cells(e, times)
		if text := missingText(s.reasons[e.Slot.Start]); text != "" && e.State == history.Missed {
			note := &row[len(row)-1]
			*note = strings.TrimPrefix(*note+"; "+text, "; ")
		}
		again = again || e.Attempt > 1
		texts = append(texts, row)
	}
	state := func(row int, _ string) table.Colour { return colourOfState(s.rows[row]) }
	return table.Lines(grid([]column{
		{name: "SLOT START", kept: true},
		{name: "SLOT END", kept: true},
		{name: "HOLDER", kept: true},
		{name: "GROUP"},
		{name: "PRIO", right: true, kept: true},
		{name: "TOKEN", right: true, kept: true},
		{name: "CLAIMED", right: true, kept: true},
		{name: "ATTEMPT", right: true, hidden: !again},
		{name: "STATE", colour: state, kept: true},
		{name: "NOTE", colour: always(table.Faint), blank: true},
	}, texts), nil, colours)
}

// matters is the rows: in the table, an extension of a lease doesn't show.
func (s snapshot) matters(asJSON bool) string {
	if asJSON {
		b, _ := json.Marshal(snapshot{rows: s.rows, lost: s.lost}.json()) // texts and numbers
		return string(b)
	}
	var b strings.Builder
	b.WriteString(strings.Join(s.lost, "\t"))
	for _, e := range s.rows {
		b.WriteString(strings.Join(cells(e, timeStyle{}), "\t") + "\n")
	}
	return b.String()
}

// timeStyle is the form of the times of a table.
type timeStyle struct {
	today time.Time // times of this day are shown without a date; zero: all have one
	whole bool      // all are whole seconds
}

func (s snapshot) timeStyle() timeStyle {
	style := timeStyle{whole: true}
	for _, e := range s.rows {
		for _, t := range []time.Time{e.Slot.Start, e.Slot.End} {
			style.whole = style.whole && t.Nanosecond() == 0
		}
	}
	sameDay := !slices.ContainsFunc(s.rows, func(e history.Entry) bool { return !e.Slot.Start.IsZero() && !onDay(e.Slot.Start, s.at) })
	if sameDay {
		style.today = s.at
	}
	return style
}

// text is a time, which needs no date if it is on a day.
func (s timeStyle) text(t, day time.Time) string {
	if t.IsZero() {
		return table.None
	}
	layout := "15:04:05.000Z"
	if s.whole {
		layout = "15:04:05Z"
	}
	if !onDay(t, day) {
		layout = "2006-01-02T" + layout
	}
	return t.UTC().Format(layout)
}

// onDay reports whether a time is on the day of another, in UTC.
func onDay(t, day time.Time) bool {
	const dayLength = 24 * time.Hour
	return t.UTC().Truncate(dayLength).Equal(day.UTC().Truncate(dayLength))
}

// workedBy names the worker whose work a row shows: the holder, unless the row is the outcome of another worker's attempt.
func workedBy(e history.Entry) string {
	if e.Record.Kind == store.KindOutcome && e.OutcomeKnown && e.Outcome.InstanceID != "" {
		return e.Outcome.InstanceID
	}
	return e.Record.InstanceID
}

// cells are a row as texts.
func cells(e history.Entry, times timeStyle) []string {
	holder, group, priority, token, claimed, attempt := "", "", "", "", "", ""
	if r := e.Record; r.Seq != 0 && r.Defect == "" && r.Kind != store.KindOrder { // An order repeats whose lease it stands on.
		holder, group, priority, token = r.InstanceID, r.Group, strconv.Itoa(r.Priority), strconv.FormatInt(r.Token, 10)
	}
	if by := workedBy(e); by != holder && holder != "" {
		holder, group, priority, token = by, "", "", "" // The grant is lost, and with it the token.
	}
	if e.ClaimKnown {
		claimed = history.Relative(e.Claimed)
	}
	if e.Attempt > 0 {
		attempt = strconv.Itoa(e.Attempt)
	}
	return []string{
		times.text(e.Slot.Start, times.today), times.text(e.Slot.End, e.Slot.Start), holder, group, priority,
		token, claimed, attempt, stateOf(e), noteOf(e),
	}
}

// noteOf is the note of a row. What is too long is cut before the time until which nothing can
// be claimed: that matters most, and stands last.
func noteOf(e history.Entry) string {
	whole := e.Note()
	e.BlocksUntil = time.Time{}
	own := e.Note()
	blocked := strings.TrimPrefix(whole, own)
	if e.State == history.Poison {
		own = strings.TrimSuffix("record "+strconv.FormatInt(e.Record.Seq, 10)+": "+own, ": ")
	}
	if own != "" && blocked != "" {
		blocked = ", " + strings.TrimPrefix(blocked, ", ")
	}
	return display.Clip(display.Line(own), mostColumns-display.Width(blocked)) + blocked
}

// stateOf is the state of a slot for people. A lease that lasted to the end of its slot has ended as it should, and one that
// expired before that says that its worker fell silent.
func stateOf(e history.Entry) string {
	if e.State == history.Expired && !e.Silent() {
		return "ended"
	}
	return string(e.State)
}

// colourOfState draws the eye to what matters.
func colourOfState(e history.Entry) table.Colour {
	if e.Silent() {
		return table.Red
	}
	return stateColours[e.State]
}

var stateColours = map[history.State]table.Colour{
	history.Upcoming: table.Cyan, history.Held: table.Green, history.Released: table.Yellow, history.Overridden: table.Yellow, history.Missed: table.Red, history.Skipped: table.Yellow, history.Free: table.Yellow,
	history.Poison: table.Red, history.Failed: table.Red, history.Expired: table.Plain, history.Done: table.Plain,
}
