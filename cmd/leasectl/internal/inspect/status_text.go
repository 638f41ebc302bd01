package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/slots"
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
	return s.framed(display.Count(len(s.types), "worker type"), text, framed)
}

// table is the table of the types. On a terminal that is too narrow for the notes, they come below it: they are what
// matters most.
func (s overview) table(colours bool) string {
	wide := func(line string) bool { return display.Width(line) > s.width }
	if s.width <= 0 || !slices.ContainsFunc(table.Lines(s.rows(true), nil, false), wide) {
		return strings.Join(table.Lines(s.rows(true), nil, colours), "\n") + "\n"
	}
	text := strings.Join(table.Lines(s.rows(false), nil, colours), "\n") + "\n"
	for _, t := range s.types {
		if t.notes() == "" {
			continue
		}
		text += "\n"
		for _, line := range display.Wrapped(display.Line(t.workerType+": "+t.notes()), s.width) {
			text += table.Paint(colours, table.Yellow, line) + "\n"
		}
	}
	return text
}

// rows are those of the table, with or without the notes.
func (s overview) rows(notes bool) [][]table.Cell {
	var texts [][]string
	for _, t := range s.types {
		texts = append(texts, t.texts(s.at))
	}
	lastState := func(row int, _ string) table.Colour { return colourOfState(s.types[row].last) }
	return grid([]column{
		{name: "WORKER TYPE"},
		{name: "SCHEDULE"},
		{name: "HOLDER", colour: always(table.Green)},
		{name: "PRIO"},
		{name: "SINCE"},
		{name: "UNTIL"},
		{name: "LAST", colour: lastState},
		{name: "NEXT"},
		{name: "JOB"},
		{name: "WORKERS"},
		{name: "NOTE", colour: always(table.Yellow), most: 10 * mostColumns, blank: true, hidden: !notes},
	}, texts)
}

// texts are the cells of a row.
func (t typeStatus) texts(now time.Time) []string {
	clock, in := timeStyle{today: now, whole: true}, zone(t.schedule)
	holder, prio, since, until, last, next, workers := "", "", "", "", "", "", ""
	if t.holder.State != "" {
		holder, prio = holderOf(t.holder), fmt.Sprint(t.holder.Record.Priority)
		since, until = clock.text(t.since, now), clock.text(t.holder.Window.End, now)
	}
	if t.last.State != "" {
		start := clock.text(t.last.Slot.Start, now) + beside(t.last.Slot.Start, in, false)
		last = fmt.Sprintf("%s %s", start, stateOf(t.last))
		if t.last.Count > 1 {
			last = fmt.Sprintf("%d %s since %s", t.last.Count, t.last.State, start)
		}
	}
	if !t.next.IsZero() {
		next = t.comes(now)
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
	return []string{t.workerType, t.schedule, holder, prio, since, until, last, next, JobText(t.job), workers, t.notes()}
}

// comes says when the next slot begins.
func (t typeStatus) comes(now time.Time) string {
	paused := ""
	begins := t.begins()
	if !begins.Equal(t.next.Start) {
		paused = "paused, then "
	}
	return paused + "in " + brief(begins.Sub(now).Round(time.Second)) + beside(begins, zone(t.schedule), false)
}

// begins is when the next slot begins: while the type is paused, the first one after that.
func (t typeStatus) begins() time.Time {
	begins := t.next.Start
	for _, o := range t.orders {
		schedule, err := slots.Parse(t.schedule)
		if o.Kind == store.OrderPause && t.claimedBy == "" && err == nil && o.Until.After(begins) {
			begins = schedule.Next(o.Until.Add(-1)).Start
		}
	}
	return begins
}

// TypeStatus is a row of the JSON form. Its names don't change.
type TypeStatus struct {
	WorkerType string    `json:"workerType"`
	Schedule   string    `json:"schedule,omitempty"`
	Holder     *Slot     `json:"holder,omitempty"`
	Since      string    `json:"since,omitempty"`
	Last       *Slot     `json:"last,omitempty"`
	NextStart  string    `json:"nextStart,omitempty"`
	NextInMs   *int64    `json:"nextInMs,omitempty"`
	ClaimedBy  string    `json:"claimedBy,omitempty"`
	Present    *int      `json:"workersPresent,omitempty"`
	Gone       *int      `json:"workersGone,omitempty"`
	Job        *JobTimes `json:"job,omitempty"`
	DoneUntil  string    `json:"doneUntil,omitempty"`
	OverdueMs  int64     `json:"overdueMs,omitempty"`
	Orders     []Order   `json:"orders,omitempty"`
	Note       string    `json:"note,omitempty"`
	Warnings   []string  `json:"warnings,omitempty"`
	Recent     []Recent  `json:"recent,omitempty"`
}

// Overview is the JSON form of status. Its names don't change.
type Overview struct {
	StoreTime string        `json:"storeTime"`
	Store     string        `json:"store"`
	Types     []TypeStatus  `json:"types"`
	Warning   string        `json:"warning,omitempty"`
	Units     *charges.JSON `json:"requestUnits,omitempty"`
}

func (s overview) json() any { return s.data() }

func (s overview) data() Overview {
	out := Overview{StoreTime: store.Format(s.at), Store: s.store, Types: []TypeStatus{}, Warning: s.warning, Units: charges.ToJSON(s.charges)}
	for _, t := range s.types {
		row := TypeStatus{WorkerType: t.workerType, Schedule: t.schedule, ClaimedBy: t.claimedBy, Job: JobJSON(t.job), DoneUntil: jsonTime(t.doneUntil), OverdueMs: t.overdue(s.at).Milliseconds(), Note: t.note, Warnings: t.warnings, Recent: t.recent}
		for _, o := range t.orders {
			row.Orders = append(row.Orders, orderOf(o))
		}
		if t.holder.State != "" {
			row.Holder, row.Since = new(slotOf(t.holder, s.at)), jsonTime(t.since)
		}
		if t.last.State != "" {
			row.Last = new(slotOf(t.last, s.at))
		}
		if !t.next.IsZero() {
			row.NextStart, row.NextInMs = jsonTime(t.begins()), new(t.begins().Sub(s.at).Milliseconds())
		}
		if s.roster {
			row.Present, row.Gone = new(t.present), new(t.gone)
		}
		out.Types = append(out.Types, row)
	}
	return out
}
