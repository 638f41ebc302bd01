package inspect

import (
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
)

// drawing is the table with its title, and with its cost, if it had one. A frame of a picture
// has the warning, too, which is told beside the table otherwise.
func (s snapshot) drawing(colours, framed bool) string {
	table := "no records yet\n"
	if len(s.rows) > 0 {
		table = strings.Join(s.tableLines(colours), "\n") + "\n"
	}
	if framed && s.warning != "" {
		table += "\nwarning: " + display.Line(s.warning) + "\n"
	}
	if s.note != "" {
		table += "\nnote: " + display.Line(s.note) + "\n"
	}
	if s.try != "" {
		table += "\ntry: " + s.try + "\n"
	}
	if cost := charges.Text(s.charges); cost != "" {
		table += "\nlooking at it cost " + cost + "\n"
	}
	title := s.title()
	if s.copied.server != "" {
		title += "\n" + s.copied.line(s.at)
	}
	return title + "\n\n" + table
}

// title names the worker type, the store and the time.
func (s snapshot) title() string {
	subject, place := "worker type "+display.Flat(s.workerType), display.Flat(s.store)
	switch {
	case s.workerType == "" && s.types.None():
		subject = "no worker types"
	case s.workerType == "":
		subject = "no worker types but " + s.types.String()
	}
	return titled(subject, place, s.at)
}

// titled names what is shown, the store and the time, in one line if it fits.
func titled(subject, place string, when time.Time) string {
	at := "store time " + store.Format(when)
	if title := subject + " · " + place + " · " + at; display.Width(title) <= 80 {
		return title
	}
	return subject + " · " + at + "\n" + place
}
