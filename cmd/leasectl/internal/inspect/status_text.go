package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
)

// drawing is the table with its title.
func (s overview) drawing(colours, framed bool) string {
	text := "no worker types\n"
	if len(s.types) > 0 {
		text = s.table(colours)
	}
	if len(s.invalid) > 0 {
		text += "\nnames that no worker type can have: " + (Types{Invalid: s.invalid}).String() + "\n"
	}
	if framed && s.warning != "" {
		text += "\nwarning: " + display.Line(s.warning) + "\n"
	}
	if cost := charges.Text(s.charges); cost != "" {
		text += "\nlooking at it cost " + cost + "\n"
	}
	return titled(counted(len(s.types), "worker type"), display.Flat(s.store), s.at) + "\n\n" + text
}

// table is the table of the types. On a terminal that is too narrow for the notes, they come below it: they are what
// matters most.
func (s overview) table(colours bool) string {
	lines := table.Lines(s.rows(true), nil, colours)
	wide := func(line string) bool { return display.Width(colourOrder.ReplaceAllString(line, "")) > s.width }
	if s.width <= 0 || !slices.ContainsFunc(lines, wide) {
		return strings.Join(lines, "\n") + "\n"
	}
	text := strings.Join(table.Lines(s.rows(false), nil, colours), "\n") + "\n"
	for _, t := range s.types {
		if t.notes() == "" {
			continue
		}
		text += "\n"
		for _, line := range wrapped(display.Line(t.workerType+": "+t.notes()), s.width) {
			text += table.Paint(colours, table.Yellow, line) + "\n"
		}
	}
	return text
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// rows are those of the table, with or without the notes.
func (s overview) rows(notes bool) [][]table.Cell {
	head := []string{"WORKER TYPE", "SCHEDULE", "HOLDER", "PRIO", "SINCE", "UNTIL", "LAST", "NEXT", "WORKERS", "NOTE"}
	shown := make([]bool, len(head))
	var texts [][]string
	for _, t := range s.types {
		row := t.texts(s.at)
		for i, text := range row {
			shown[i] = shown[i] || text != ""
		}
		texts = append(texts, row)
	}
	rows := make([][]table.Cell, len(texts)+1)
	for i, name := range head {
		if !shown[i] || name == "NOTE" && !notes {
			continue
		}
		rows[0] = append(rows[0], table.Left(table.Faint, name))
		for n, row := range texts {
			cell := table.Left(table.Plain, display.Clip(display.Line(row[i]), mostColumns))
			switch name {
			case "HOLDER":
				cell.Colour = table.Green
			case "LAST":
				cell.Colour = stateColours[s.types[n].last.State]
			case "NOTE":
				cell.Colour = table.Yellow
			}
			if cell.Text == "" && name != "NOTE" {
				cell.Text = table.None
			}
			rows[n+1] = append(rows[n+1], cell)
		}
	}
	return rows
}

// texts are the cells of a row.
func (t typeStatus) texts(now time.Time) []string {
	clock := timeStyle{today: now, whole: true}
	holder, prio, since, until, last, next, workers := "", "", "", "", "", "", ""
	if t.holder.State != "" {
		holder, prio = holderOf(t.holder), fmt.Sprint(t.holder.Record.Priority)
		since, until = clock.text(t.since, now), clock.text(t.holder.Window.End, now)
	}
	if t.last.State != "" {
		last = fmt.Sprintf("%s %s", clock.text(t.last.Slot.Start, now), t.last.State)
		if t.last.Count > 1 {
			last = fmt.Sprintf("%d %s since %s", t.last.Count, t.last.State, clock.text(t.last.Slot.Start, now))
		}
	}
	if !t.next.IsZero() {
		next = "in " + brief(t.next.Start.Sub(now).Round(time.Second))
		if t.claimedBy != "" {
			next += ", " + t.claimedBy
		}
	}
	switch {
	case t.gone > 0:
		workers = fmt.Sprintf("%d, %d gone", t.present, t.gone)
	case t.present > 0:
		workers = fmt.Sprint(t.present)
	}
	return []string{t.workerType, t.schedule, holder, prio, since, until, last, next, workers, t.notes()}
}

// TypeStatus is a row of the JSON form. Its names don't change.
type TypeStatus struct {
	WorkerType string   `json:"workerType"`
	Schedule   string   `json:"schedule,omitempty"`
	Holder     *Slot    `json:"holder,omitempty"`
	Since      string   `json:"since,omitempty"`
	Last       *Slot    `json:"last,omitempty"`
	NextStart  string   `json:"nextStart,omitempty"`
	NextInMs   *int64   `json:"nextInMs,omitempty"`
	ClaimedBy  string   `json:"claimedBy,omitempty"`
	Present    *int     `json:"workersPresent,omitempty"`
	Gone       *int     `json:"workersGone,omitempty"`
	Orders     []Order  `json:"orders,omitempty"`
	Note       string   `json:"note,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Overview is the JSON form of status. Its names don't change.
type Overview struct {
	StoreTime string        `json:"storeTime"`
	Store     string        `json:"store"`
	Types     []TypeStatus  `json:"types"`
	Warning   string        `json:"warning,omitempty"`
	Units     *charges.JSON `json:"requestUnits,omitempty"`
}

func (s overview) writeJSON(w io.Writer, indent bool) error {
	out := Overview{StoreTime: store.Format(s.at), Store: s.store, Types: []TypeStatus{}, Warning: s.warning, Units: charges.ToJSON(s.charges)}
	for _, t := range s.types {
		row := TypeStatus{WorkerType: t.workerType, Schedule: t.schedule, ClaimedBy: t.claimedBy, Note: t.note, Warnings: t.warnings}
		for _, o := range t.orders {
			row.Orders = append(row.Orders, orderOf(o))
		}
		if t.holder.State != "" {
			row.Holder, row.Since = new(slotOf(t.holder)), jsonTime(t.since)
		}
		if t.last.State != "" {
			row.Last = new(slotOf(t.last))
		}
		if !t.next.IsZero() {
			row.NextStart, row.NextInMs = jsonTime(t.next.Start), new(t.next.Start.Sub(s.at).Milliseconds())
		}
		if s.roster {
			row.Present, row.Gone = new(t.present), new(t.gone)
		}
		out.Types = append(out.Types, row)
	}
	encoder := json.NewEncoder(display.JSONWriter{To: w})
	encoder.SetEscapeHTML(false)
	if indent {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(out)
}
