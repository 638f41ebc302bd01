package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/workerlease/history"
)

// columns are those of the table, and which of them are aligned to the right.
var columns = []struct {
	name  string
	right bool
}{
	{"SLOT START", false},
	{"SLOT END", false},
	{"HOLDER", false},
	{"GROUP", false},
	{"PRIO", true},
	{"TOKEN", true},
	{"CLAIMED", true},
	{"ATTEMPT", true},
	{"STATE", false},
	{"NOTE", false},
}

// tableLines are the table with its heading. To fit a terminal of 80 columns it leaves out
// the date if all rows are of today, and the columns of groups and notes without any, and
// of attempts without a second one.
func (s snapshot) tableLines(colours bool) []string {
	times := s.timeStyle()
	rows := [][]table.Cell{make([]table.Cell, len(columns))}
	for i, c := range columns {
		rows[0][i] = table.Cell{Text: c.name, Colour: table.Faint, Right: c.right}
	}
	for _, e := range s.rows {
		row := cells(e, times)
		if text := missingText(s.reasons[e.Slot.Start]); text != "" && e.State == history.Missed {
			note := &row[len(row)-1]
			note.Text = display.Clip(display.Line(strings.TrimPrefix(note.Text+"; "+text, "; ")), mostColumns)
		}
		rows = append(rows, row)
	}
	if s.dated {
		return table.Lines(rows, nil, colours)
	}
	for i, c := range slices.Backward(columns) {
		name := c.name
		empty := !slices.ContainsFunc(rows[1:], func(row []table.Cell) bool { return row[i].Text != table.None && row[i].Text != "" })
		if name == "ATTEMPT" {
			empty = !slices.ContainsFunc(s.rows, func(e history.Entry) bool { return e.Attempt > 1 })
		}
		if empty && (name == "GROUP" || name == "ATTEMPT" || name == "NOTE") {
			for n, row := range rows {
				rows[n] = slices.Delete(row, i, i+1)
			}
		}
	}
	return table.Lines(rows, nil, colours)
}

// timeStyle is the form of the times of a table.
type timeStyle struct {
	today time.Time // times of this day are shown without a date; zero: all have one
	whole bool      // all are whole seconds
}

func (s snapshot) timeStyle() timeStyle {
	style := timeStyle{whole: !s.dated}
	for _, e := range s.rows {
		for _, t := range []time.Time{e.Slot.Start, e.Slot.End} {
			style.whole = style.whole && t.Nanosecond() == 0
		}
	}
	sameDay := !slices.ContainsFunc(s.rows, func(e history.Entry) bool { return !e.Slot.Start.IsZero() && !onDay(e.Slot.Start, s.at) })
	if sameDay && !s.dated {
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

// cells are a row as texts.
func cells(e history.Entry, times timeStyle) []table.Cell {
	holder, group, priority, token, claimed, attempt := table.None, table.None, table.None, table.None, table.None, table.None
	if r := e.Record; r.Seq != 0 && r.Defect == "" {
		holder, priority, token = r.InstanceID, strconv.Itoa(r.Priority), strconv.FormatInt(r.Token, 10)
		if r.Group != "" {
			group = r.Group
		}
	}
	if e.ClaimKnown {
		claimed = history.Relative(e.Claimed)
	}
	if e.Attempt > 0 {
		attempt = strconv.Itoa(e.Attempt)
	}
	texts := []string{
		times.text(e.Slot.Start, times.today), times.text(e.Slot.End, e.Slot.Start), holder, group, priority,
		token, claimed, attempt, string(e.State), noteOf(e),
	}
	colours := map[string]table.Colour{"STATE": stateColours[e.State], "NOTE": table.Faint}
	row := make([]table.Cell, len(columns))
	for i, c := range columns {
		row[i] = table.Cell{Text: display.Clip(display.Line(texts[i]), mostColumns), Colour: colours[c.name], Right: c.right}
	}
	return row
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

// stateColours draw the eye to what matters.
var stateColours = map[history.State]table.Colour{
	history.Upcoming: table.Cyan, history.Held: table.Green, history.Released: table.Yellow, history.Overridden: table.Yellow, history.Missed: table.Red, history.Free: table.Yellow,
	history.Poison: table.Red, history.Failed: table.Red, history.Expired: table.Plain, history.Done: table.Plain,
}

// mostColumns bounds what a hostile record can make of a table.
const mostColumns = 120
