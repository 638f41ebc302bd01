package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// marks are the levels on a terminal with colours; elsewhere they are words.
var marks = map[store.Level]struct {
	sign   string
	colour table.Colour
}{
	store.LevelOK: {"✓", table.Green}, store.LevelWarn: {"!", table.Yellow}, store.LevelFail: {"✗", table.Red}, store.LevelSkip: {"-", table.Faint},
}

// Text is a line for each check, what the store says of its durability, and a line that sums up.
func (r Report) Text(colours bool) string {
	var rows [][]table.Cell
	count := map[store.Level]int{}
	for _, f := range r.findings {
		count[f.Level]++
		m := marks[f.Level]
		sign := string(f.Level)
		if colours {
			sign = m.sign
		}
		text := f.Text
		if f.Remedy != "" {
			text += " (try: " + f.Remedy + ")"
		}
		colour := table.Plain
		if f.Level == store.LevelSkip {
			colour = table.Faint
		}
		rows = append(rows, []table.Cell{table.Left(m.colour, sign), table.Left(colour, f.Check), table.Left(colour, text)})
	}
	lines := strings.Join(table.Lines(rows, nil, colours), "\n")
	if d := r.durable; d != nil {
		lines += "\n\nwhat survives of the records that it acknowledged\n\n" + strings.Join(table.Lines([][]table.Cell{
			{table.Left(table.Plain, "crash"), table.Left(table.Plain, d.Crash)},
			{table.Left(table.Plain, "power loss"), table.Left(table.Plain, d.Power)},
			{table.Left(table.Plain, "failover"), table.Left(table.Plain, d.Failover)},
		}, nil, colours), "\n")
	}
	title := display.Flat(r.store)
	if !r.at.IsZero() {
		title += " · store time " + store.Format(r.at)
	}
	sum := fmt.Sprintf("%d ok, %d to see to, %d failed, %d skipped, in %v",
		count[store.LevelOK], count[store.LevelWarn], count[store.LevelFail], count[store.LevelSkip], brief(r.took))
	if r.units > 0 {
		sum += fmt.Sprintf(", for %.4g RU", r.units)
	}
	return title + "\n\n" + lines + "\n\n" + sum + "\n"
}

// JSON is the JSON form of a report. Its names don't change.
type JSON struct {
	Store      string            `json:"store"`
	StoreTime  string            `json:"storeTime,omitempty"`
	Sound      bool              `json:"sound"`
	TookMs     int64             `json:"tookMs"`
	Checks     []store.Finding   `json:"checks"`
	Durability *store.Durability `json:"durability,omitempty"`
	Units      *charges.JSON     `json:"requestUnits,omitempty"`
}

// JSON is the report for programs.
func (r Report) JSON() JSON {
	out := JSON{Store: r.store, Sound: !failed(r.findings), TookMs: r.took.Milliseconds(), Checks: r.findings, Durability: r.durable}
	if !r.at.IsZero() {
		out.StoreTime = store.Format(r.at)
	}
	if r.units > 0 {
		out.Units = charges.ToJSON(workerlease.Charges{"doctor": r.units})
	}
	return out
}

// WriteJSON writes one object.
func (r Report) WriteJSON(w io.Writer) error { return display.WriteJSON(w, r.JSON(), true) }
