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

// heading are the columns of the table.
var heading = []table.Cell{
	table.Left(table.Faint, "SLOT START"),
	table.Left(table.Faint, "SLOT END"),
	table.Left(table.Faint, "HOLDER"),
	table.Left(table.Faint, "GROUP"),
	table.Right(table.Faint, "PRIO"),
	table.Right(table.Faint, "TOKEN"),
	table.Right(table.Faint, "CLAIMED"),
	table.Right(table.Faint, "ATTEMPT"),
	table.Left(table.Faint, "STATE"),
	table.Left(table.Faint, "NOTE"),
}

// tableLines are the table with its heading. To fit a terminal of 80 columns it leaves out
// the date if all rows are of today, and the columns of groups and notes without any, and
// of attempts without a second one.
func (s snapshot) tableLines(colours bool) []string {
	times := s.timeStyle()
	rows := [][]table.Cell{slices.Clone(heading)}
	for _, e := range s.rows {
		rows = append(rows, cells(e, times))
	}
	if s.dated {
		return table.Lines(rows, nil, colours)
	}
	for i := len(heading) - 1; i >= 0; i-- {
		name := heading[i].Text
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
	note := e.Note()
	if e.State == history.Poison {
		note = strings.TrimSpace("record " + strconv.FormatInt(e.Record.Seq, 10) + ": " + note)
	}
	row := []table.Cell{
		table.Left(table.Plain, times.text(e.Slot.Start, times.today)),
		table.Left(table.Plain, times.text(e.Slot.End, e.Slot.Start)),
		table.Left(table.Plain, holder),
		table.Left(table.Plain, group),
		table.Right(table.Plain, priority),
		table.Right(table.Plain, token),
		table.Right(table.Plain, claimed),
		table.Right(table.Plain, attempt),
		table.Left(stateColours[e.State], string(e.State)),
		table.Left(table.Faint, note),
	}
	for i := range row {
		row[i].Text = clip(display.Printable(strings.ReplaceAll(row[i].Text, "\n", " ")))
	}
	return row
}

// stateColours draw the eye to what matters.
var stateColours = map[history.State]table.Colour{
	history.Upcoming: table.Cyan, history.Held: table.Green, history.Released: table.Yellow, history.Missed: table.Red, history.Free: table.Yellow,
	history.Poison: table.Red, history.Expired: table.Plain, history.Done: table.Plain,
}

// clip bounds what a hostile record can make of a table.
func clip(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
