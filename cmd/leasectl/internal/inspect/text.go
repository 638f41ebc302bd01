package inspect

import (
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// drawing is the table with its title, and with its cost, if it had one. A frame of a picture
// has the warning, too, which is told beside the table otherwise.
func (s snapshot) drawing(colours, framed bool) string {
	table := "no records yet\n"
	switch {
	case len(s.rows) > 0:
		table = strings.Join(s.tableLines(colours), "\n") + "\n"
	case len(s.lost) > 0:
		table = "no records: " + LostText(s.lost) + "\n"
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
	return s.titled(s.subject()) + "\n\n" + table + s.cost()
}

// subject names the worker type.
func (s snapshot) subject() string {
	switch {
	case s.workerType == "" && s.types.None():
		return "no worker types"
	case s.workerType == "":
		return "no worker types but " + s.types.String()
	}
	return "worker type " + display.Flat(s.workerType)
}
