// Package firings shows the next slots of a schedule, in UTC and in the schedule's zone.
package firings

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// List are the next slots of a schedule.
type List struct {
	Schedule slots.Schedule
	Zone     *time.Location // of the schedule; UTC if it has none
	Now      time.Time
	Whose    string // the worker type, or empty
	Note     string // what may keep its workers from the slots
	slots    []slots.Slot
}

// Of lists the next n slots of a schedule after a time.
func Of(schedule slots.Schedule, whose string, now time.Time, n int) List {
	l := List{Schedule: schedule, Zone: zoneOf(schedule), Now: now, Whose: whose}
	for slot := range slots.Upcoming(schedule, now) {
		if len(l.slots) == n {
			break
		}
		l.slots = append(l.slots, slot)
	}
	return l
}

// zoneOf is the zone that the text of a schedule ends with.
func zoneOf(s slots.Schedule) *time.Location {
	words := strings.Fields(s.String())
	if len(words) < 2 || words[0] != "cron" {
		return time.UTC
	}
	zone, err := time.LoadLocation(words[len(words)-1])
	if err != nil || zone.String() == "Local" {
		return time.UTC
	}
	return zone
}

// note says what clocks do within a slot, and when it begins late because of them.
func (l List) note(s slots.Slot) string {
	_, before := s.Start.In(l.Zone).Zone()
	_, after := s.End.In(l.Zone).Zone()
	switch change := time.Duration(after-before) * time.Second; {
	case change > 0:
		return fmt.Sprintf("clocks go forward by %v", shortly(change))
	case change < 0:
		return fmt.Sprintf("clocks go back by %v", shortly(-change))
	case l.skipped(s.Start):
		return "begins late: clocks skip its time"
	}
	return ""
}

// skipped reports whether clocks skip the time of day at which a slot would have begun, so that it begins when they go
// forward: by clocks that never change, its spec has no firing at that time.
func (l List) skipped(start time.Time) bool {
	at := start.In(l.Zone)
	_, before := start.Add(-time.Second).In(l.Zone).Zone()
	if _, after := at.Zone(); after <= before {
		return false
	}
	unchanged, err := slots.Parse(strings.TrimSuffix(l.Schedule.String(), l.Zone.String()) + "UTC")
	if err != nil {
		return false
	}
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	return !unchanged.At(wall).Start.Equal(wall)
}

// shortly is a duration without zeros at its end, such as 1h or 2h30m.
func shortly(d time.Duration) string {
	text := d.String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

// Text is the list for people.
func (l List) Text(colours bool) string {
	zoned := l.Zone != time.UTC
	head := []string{"START", "IN", "LENGTH", "NOTE"}
	if zoned {
		head = []string{"START (UTC)", "START (" + l.Zone.String() + ")", "IN", "LENGTH", "NOTE"}
	}
	rows := [][]table.Cell{nil}
	noted := false
	for _, s := range l.slots {
		row := []string{s.Start.UTC().Format("2006-01-02T15:04:05Z07:00")}
		if s.Start.Nanosecond() != 0 {
			row[0] = store.Format(s.Start)
		}
		if zoned {
			row = append(row, s.Start.In(l.Zone).Format("Mon 2006-01-02 15:04:05 MST"))
		}
		note := l.note(s)
		noted = noted || note != ""
		row = append(row, shortly(s.Start.Sub(l.Now).Round(time.Second)), shortly(s.Length()), note)
		cells := make([]table.Cell, len(row))
		for i, text := range row {
			cells[i] = table.Left(table.Plain, text)
		}
		rows = append(rows, cells)
	}
	for _, name := range head {
		rows[0] = append(rows[0], table.Left(table.Faint, name))
	}
	if !noted {
		for i := range rows {
			rows[i] = rows[i][:len(rows[i])-1]
		}
	}
	title := display.Flat(l.Schedule.String())
	if l.Whose != "" {
		title = "worker type " + display.Flat(l.Whose) + " · " + title
	}
	text := title + " · now " + store.Format(l.Now) + "\n\n" + strings.Join(table.Lines(rows, nil, colours), "\n") + "\n"
	if l.Note != "" {
		text += "\nnote: " + display.Line(l.Note) + "\n"
	}
	return text
}

// Firing is a row of the JSON form. Its names don't change.
type Firing struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Local    string `json:"localStart"`
	InMs     int64  `json:"inMs"`
	LengthMs int64  `json:"lengthMs"`
	Note     string `json:"note,omitempty"`
}

// Report is the JSON form. Its names don't change.
type Report struct {
	WorkerType string   `json:"workerType,omitempty"`
	Schedule   string   `json:"schedule"`
	Zone       string   `json:"zone"`
	Now        string   `json:"now"`
	Slots      []Firing `json:"slots"`
	Note       string   `json:"note,omitempty"`
}

// WriteJSON writes the list for programs.
func (l List) WriteJSON(w io.Writer) error {
	out := Report{WorkerType: l.Whose, Schedule: l.Schedule.String(), Zone: l.Zone.String(), Now: store.Format(l.Now), Slots: []Firing{}, Note: l.Note}
	for _, s := range l.slots {
		out.Slots = append(out.Slots, Firing{
			Start: store.Format(s.Start), End: store.Format(s.End), Local: s.Start.In(l.Zone).Format(time.RFC3339),
			InMs: s.Start.Sub(l.Now).Milliseconds(), LengthMs: s.Length().Milliseconds(), Note: l.note(s),
		})
	}
	encoder := json.NewEncoder(display.JSONWriter{To: w})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
