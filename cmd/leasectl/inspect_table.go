package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/workerlease/history"
)

// heading are the columns of the table.
var heading = []cell{
	{"SLOT START", faint, false},
	{"SLOT END", faint, false},
	{"HOLDER", faint, false},
	{"GROUP", faint, false},
	{"PRIO", faint, true},
	{"TOKEN", faint, true},
	{"CLAIMED", faint, true},
	{"ATTEMPT", faint, true},
	{"STATE", faint, false},
	{"NOTE", faint, false},
}

// none is a cell that has nothing to say.
const none = "-"

// tableLines are the table with its heading. What all rows have in common with
// the title is left out, so that it fits a terminal of 80 columns: the date, and
// the columns of groups, attempts and notes if there are none, or no second ones.
func (s snapshot) tableLines(colours bool) []string {
	times := s.timeStyle()
	rows := [][]cell{slices.Clone(heading)}
	for _, e := range s.rows {
		rows = append(rows, cells(e, times))
	}
	if s.dated {
		return align(rows, nil, colours)
	}
	for i := len(heading) - 1; i >= 0; i-- {
		name := heading[i].text
		empty := !slices.ContainsFunc(rows[1:], func(row []cell) bool { return row[i].text != none && row[i].text != "" })
		if name == "ATTEMPT" {
			empty = !slices.ContainsFunc(s.rows, func(e history.Entry) bool { return e.Attempt > 1 })
		}
		if empty && (name == "GROUP" || name == "ATTEMPT" || name == "NOTE") {
			for n, row := range rows {
				rows[n] = slices.Delete(row, i, i+1)
			}
		}
	}
	return align(rows, nil, colours)
}

// timeStyle is how the times of a table are shown.
type timeStyle struct {
	today time.Time // times of this day are shown without it, unless it is zero
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
		return none
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
func cells(e history.Entry, times timeStyle) []cell {
	holder, group, priority, token, claimed, attempt := none, none, none, none, none, none
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
	row := []cell{
		{times.text(e.Slot.Start, times.today), plain, false},
		{times.text(e.Slot.End, e.Slot.Start), plain, false},
		{holder, plain, false},
		{group, plain, false},
		{priority, plain, true},
		{token, plain, true},
		{claimed, plain, true},
		{attempt, plain, true},
		{string(e.State), stateColours[e.State], false},
		{note, faint, false},
	}
	for i := range row {
		row[i].text = clip(printable(strings.ReplaceAll(row[i].text, "\n", " ")))
	}
	return row
}
