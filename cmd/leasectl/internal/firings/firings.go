// Package firings shows the next slots of a schedule, in UTC and in the schedule's zone.
package firings

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
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
	// StartWithin is how late the first attempt at the job of a slot may begin; nil: there is no job.
	StartWithin func(slots.Slot) time.Duration
	Job         *store.JobTimes // its times; nil if there is none
	slots       []slots.Slot
}

// Of lists the next n slots of a schedule after a time.
func Of(schedule slots.Schedule, whose string, now time.Time, n int) List {
	l := List{Schedule: schedule, Zone: slots.Location(schedule), Now: now, Whose: whose}
	for slot := range slots.Upcoming(schedule, now) {
		if len(l.slots) == n {
			break
		}
		l.slots = append(l.slots, slot)
	}
	return l
}

// note says what clocks do within a slot, and when it begins late because of them.
func (l List) note(s slots.Slot) string {
	_, before := s.Start.In(l.Zone).Zone()
	_, after := s.End.In(l.Zone).Zone()
	switch change := time.Duration(after-before) * time.Second; {
	case change > 0:
		return fmt.Sprintf("clocks go forward by %v", display.Brief(change))
	case change < 0:
		return fmt.Sprintf("clocks go back by %v", display.Brief(-change))
	case l.skipped(s.Start):
		return "begins late: clocks skip its time"
	}
	return ""
}

// skipped reports whether clocks skip the time of day at which a slot would have begun, so that it begins when they go
// forward: by clocks that never change, its spec has no firing at that time.
func (l List) skipped(start time.Time) bool {
	schedule, by := slots.Unshifted(l.Schedule)
	start = start.Add(-by)
	at := start.In(l.Zone)
	_, before := start.Add(-time.Second).In(l.Zone).Zone()
	if _, after := at.Zone(); after <= before {
		return false
	}
	unchanged, err := slots.Parse(strings.ReplaceAll(schedule.String(), " "+l.Zone.String(), " UTC"))
	if err != nil {
		return false
	}
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	return !unchanged.At(wall).Start.Equal(wall)
}

// column is a column of the table.
type column struct {
	name string
	text func(slots.Slot) string
}

// columns are those that aren't empty for these slots.
func (l List) columns() []column {
	all := []column{{"START", func(s slots.Slot) string { return instant(s.Start) }}}
	if l.Zone != time.UTC {
		all[0].name = "START (UTC)"
		all = append(all, column{"START (" + l.Zone.String() + ")", func(s slots.Slot) string { return s.Start.In(l.Zone).Format("Mon 2006-01-02 15:04:05 MST") }})
	}
	all = append(all,
		column{"IN", func(s slots.Slot) string { return display.Brief(s.Start.Sub(l.Now)) }},
		column{"LENGTH", func(s slots.Slot) string { return display.Brief(s.Length()) }})
	if l.StartWithin != nil {
		all = append(all, column{"BEGUN BY", func(s slots.Slot) string { return instant(s.Start.Add(l.StartWithin(s))) }})
	}
	if slices.ContainsFunc(l.slots, func(s slots.Slot) bool { return l.note(s) != "" }) {
		all = append(all, column{"NOTE", l.note})
	}
	return all
}

// Text is the list for people.
func (l List) Text(colours bool) string {
	rows := make([][]table.Cell, 1+len(l.slots))
	for _, c := range l.columns() {
		rows[0] = append(rows[0], table.Left(table.Faint, c.name))
		for i, s := range l.slots {
			rows[i+1] = append(rows[i+1], table.Left(table.Plain, c.text(s)))
		}
	}
	title := display.Flat(l.Schedule.String())
	if l.Whose != "" {
		title = "worker type " + display.Flat(l.Whose) + " · " + title
	}
	if l.Job != nil {
		title += " · job: " + inspect.JobText(l.Job) + ", " + inspect.AttemptsText(l.Job)
	}
	text := title + " · now " + store.Format(l.Now) + "\n\n" + strings.Join(table.Lines(rows, nil, colours), "\n") + "\n"
	if l.Note != "" {
		text += "\nnote: " + display.Line(l.Note) + "\n"
	}
	return text
}

// instant is a time in UTC, with milliseconds if it has any.
func instant(t time.Time) string {
	if t.Nanosecond() != 0 {
		return store.Format(t)
	}
	return t.UTC().Format("2006-01-02T15:04:05Z07:00")
}

// Firing is a row of the JSON form. Its names don't change.
type Firing struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Local    string `json:"localStart"`
	InMs     int64  `json:"inMs"`
	LengthMs int64  `json:"lengthMs"`
	BegunBy  string `json:"begunBy,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Report is the JSON form. Its names don't change.
type Report struct {
	WorkerType string   `json:"workerType,omitempty"`
	Schedule   string   `json:"schedule"`
	Zone       string   `json:"zone"`
	Now        string   `json:"now"`
	Slots      []Firing `json:"slots"`

	Job  *inspect.JobTimes `json:"job,omitempty"`
	Note string            `json:"note,omitempty"`
}

// WriteJSON writes the list for programs.
func (l List) WriteJSON(w io.Writer) error {
	out := Report{WorkerType: l.Whose, Schedule: l.Schedule.String(), Zone: l.Zone.String(), Now: store.Format(l.Now), Slots: []Firing{}, Note: l.Note, Job: inspect.JobJSON(l.Job)}
	for _, s := range l.slots {
		begunBy := ""
		if l.StartWithin != nil {
			begunBy = store.Format(s.Start.Add(l.StartWithin(s)))
		}
		out.Slots = append(out.Slots, Firing{
			Start: store.Format(s.Start), End: store.Format(s.End), Local: s.Start.In(l.Zone).Format(time.RFC3339),
			InMs: s.Start.Sub(l.Now).Milliseconds(), LengthMs: s.Length().Milliseconds(), BegunBy: begunBy, Note: l.note(s),
		})
	}
	return display.WriteJSON(w, out, true)
}
