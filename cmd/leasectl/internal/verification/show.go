package verification

import (
	"fmt"
	"io"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// Finding is the JSON form of a finding. Its names don't change.
type Finding struct {
	Code         string `json:"code"`
	Severity     string `json:"severity"`
	Seq          int64  `json:"seq,omitempty"`
	SupersededBy int64  `json:"supersededBy,omitempty"`
	Text         string `json:"text"`
	Remedy       string `json:"remedy"`
}

// Ledger is the JSON form of a report. Its names don't change.
type Ledger struct {
	WorkerType string         `json:"workerType"`
	Sound      bool           `json:"sound"`
	Records    int            `json:"records"`
	First      int64          `json:"firstSeq,omitempty"`
	Last       int64          `json:"lastSeq,omitempty"`
	Terms      int            `json:"terms"`
	Grants     int            `json:"grants"`
	Missed     int            `json:"missedSlots"`
	Skipped    int            `json:"skippedSlots"`
	MissedMore bool           `json:"moreMissedSlots,omitempty"`
	Faults     int            `json:"faults"`
	Warnings   int            `json:"warnings"`
	Notes      int            `json:"notes"`
	Counts     map[string]int `json:"counts"`
	Findings   []Finding      `json:"findings"`
}

// Result is the JSON form of what leasectl verify finds. Its names don't change.
type Result struct {
	StoreTime string        `json:"storeTime"`
	Store     string        `json:"store"`
	Sound     bool          `json:"sound"`
	Faults    int           `json:"faults"`
	Warnings  int           `json:"warnings"`
	Findings  []Finding     `json:"findings"`
	Ledgers   []Ledger      `json:"ledgers"`
	Warning   string        `json:"warning,omitempty"`
	Units     *charges.JSON `json:"requestUnits,omitempty"`
}

func (r result) json() Result {
	out := Result{StoreTime: store.Format(r.at), Store: r.store, Findings: listed(r.names), Ledgers: []Ledger{}, Warning: r.warning, Units: charges.ToJSON(r.charges)}
	out.Faults, out.Warnings = r.count()
	out.Sound = out.Faults == 0
	for _, l := range r.ledgers {
		x := Ledger{
			WorkerType: l.WorkerType, Sound: l.Sound(), Records: l.Records, First: l.First, Last: l.Last, Terms: l.Terms, Grants: l.Grants,
			Missed: l.Missed, Skipped: l.Skipped, MissedMore: l.MissedMore, Faults: l.Faults, Warnings: l.Warnings, Notes: l.Notes,
			Counts: map[string]int{}, Findings: listed(l.Findings),
		}
		for _, c := range l.Counts {
			x.Counts[string(c.Code)] += c.Count
		}
		out.Ledgers = append(out.Ledgers, x)
	}
	return out
}

func listed(all []verify.Finding) []Finding {
	list := []Finding{}
	for _, f := range all {
		list = append(list, Finding{string(f.Code), string(f.Severity), f.Seq, f.SupersededBy, f.Text, f.Remedy})
	}
	return list
}

// write shows the result as JSON, or for people.
func (r result) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return display.WriteJSON(w, r.json(), true)
	}
	_, err := io.WriteString(w, r.text())
	return err
}

// text is the report for people.
func (r result) text() string {
	var b strings.Builder
	for _, f := range r.names {
		b.WriteString(textOf(f) + "\n")
	}
	for _, l := range r.ledgers {
		if l.Records == 0 && l.Sound() && l.Warnings == 0 {
			fmt.Fprintf(&b, "%s: there are no records to check\n", display.Flat(l.WorkerType))
			continue
		}
		verdict := "sound"
		if !l.Sound() {
			verdict = display.Count(l.Faults, "fault")
		}
		fmt.Fprintf(&b, "%s: %s, %s", display.Flat(l.WorkerType), verdict, display.Count(l.Warnings, "warning"))
		if l.Records > 0 {
			fmt.Fprintf(&b, ", in %s (%d to %d) of %s", display.Count(l.Records, "record"), l.First, l.Last, display.Count(l.Terms, "term"))
		}
		b.WriteString("\n")
		shown := map[verify.Severity]map[verify.Code]int{}
		for _, f := range l.Findings {
			if shown[f.Severity] == nil {
				shown[f.Severity] = map[verify.Code]int{}
			}
			shown[f.Severity][f.Code]++
			b.WriteString("  " + textOf(f) + "\n")
		}
		for _, c := range l.Counts {
			if more := c.Count - shown[c.Severity][c.Code]; more > 0 {
				fmt.Fprintf(&b, "  %s: %s: and %d more\n", c.Severity, c.Code, more)
			}
		}
	}
	if len(r.ledgers) == 0 {
		b.WriteString("no records\n")
	}
	if r.warning != "" {
		b.WriteString("\nwarning: " + display.Line(r.warning) + "\n")
	}
	if cost := charges.Text(r.charges); cost != "" {
		b.WriteString("\nreading it cost " + cost + "\n")
	}
	return b.String()
}

// textOf is a finding in one line.
func textOf(f verify.Finding) string {
	text := fmt.Sprintf("%s: %s: ", f.Severity, f.Code)
	if f.Seq != 0 {
		text += fmt.Sprintf("record %d: ", f.Seq)
	}
	return display.Line(text + f.Text + " " + f.Remedy)
}
