package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
)

// marks are the levels on a terminal with colours; elsewhere they are words.
var marks = map[store.Level]struct {
	sign   string
	colour table.Colour
}{
	store.LevelOK: {"✓", table.Green}, store.LevelWarn: {"!", table.Yellow}, store.LevelFail: {"✗", table.Red}, store.LevelSkip: {"-", table.Faint},
}

// Text is a line for each check, and one that sums up.
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
	title := display.Flat(r.store)
	if !r.at.IsZero() {
		title += " · store time " + store.Format(r.at)
	}
	sum := fmt.Sprintf("%d ok, %d to see to, %d failed, %d skipped, in %v",
		count[store.LevelOK], count[store.LevelWarn], count[store.LevelFail], count[store.LevelSkip], brief(r.took))
	return title + "\n\n" + strings.Join(table.Lines(rows, nil, colours), "\n") + "\n\n" + sum + "\n"
}

// JSON is the JSON form of a report. Its names don't change.
type JSON struct {
	Store     string          `json:"store"`
	StoreTime string          `json:"storeTime,omitempty"`
	Sound     bool            `json:"sound"`
	TookMs    int64           `json:"tookMs"`
	Checks    []store.Finding `json:"checks"`
}

// WriteJSON writes one object.
func (r Report) WriteJSON(w io.Writer) error {
	out := JSON{Store: r.store, Sound: !failed(r.findings), TookMs: r.took.Milliseconds(), Checks: r.findings}
	if !r.at.IsZero() {
		out.StoreTime = store.Format(r.at)
	}
	e := json.NewEncoder(display.JSONWriter{To: w})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
