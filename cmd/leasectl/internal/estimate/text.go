package estimate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
)

// Text is the estimate for people, in tables.
func (e Estimate) Text(colours bool) string {
	var b strings.Builder
	write := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n\n") }
	write(e.title())
	write(table.Lines(e.slotRows(), []int{20}, colours)...)
	write(table.Lines(e.dayRows(), []int{20}, colours)...)
	write(e.verdict()...)
	b.WriteString("Assumed:\n")
	for _, text := range e.assumptions() {
		b.WriteString("- " + strings.Join(display.Wrapped(text, 78), "\n  ") + "\n")
	}
	return b.String()
}

// title names the workers, their schedule and the store.
func (e Estimate) title() string {
	schedule := fmt.Sprintf("%s of one type · %s", display.Count(e.Workers, "worker"), e.Timing.Options.Schedule)
	if e.parts.several() {
		schedule += fmt.Sprintf(" · failover within %v", e.Timing.Options.FailoverWithin)
	}
	store := e.Store
	if e.billsUnits() {
		store += fmt.Sprintf(", read at %s consistency", e.Consistency)
	}
	if title := schedule + " · " + store; utf8.RuneCountInString(title) <= 80 {
		return title
	}
	return schedule + "\n" + store
}

// billsUnits reports that the store bills request units.
func (e Estimate) billsUnits() bool { return !e.Unbilled && e.kind.requests == nil }

// tableRow is a row of a name and figures.
func tableRow(colour table.Colour, name string, figures []string) []table.Cell {
	row := []table.Cell{table.Left(colour, name)}
	for _, text := range figures {
		row = append(row, table.Right(colour, text))
	}
	return row
}

// slotRows are the operations of each slot, or the requests where their kinds are told apart.
func (e Estimate) slotRows() [][]table.Cell {
	names := opNames
	if e.kind.requests != nil {
		names = e.kind.requests
	}
	heads := upper(names)
	if e.billsUnits() {
		heads = append(heads, "RU")
	}
	rows := [][]table.Cell{tableRow(table.Faint, "EACH SLOT", heads)}
	for _, r := range e.rows {
		name := r.who
		switch r.who {
		case "loser":
			name = "each of " + counted(r.workers, "loser")
		case "trimming":
			name = "trimming, its share"
		}
		figures := amounts(r.each[:len(opNames)])
		if e.kind.requests != nil {
			figures = amounts(r.cost[inPuts:][:len(names)])
		}
		if e.billsUnits() {
			figures = append(figures, units(r.cost[inUnits]))
		}
		rows = append(rows, tableRow(table.Plain, name, figures))
	}
	return rows
}

func (e Estimate) dayRows() [][]table.Cell {
	names := map[string]string{"slotlease": "slotlease", "roster": "its roster, if kept", "page": "its page, if seen", "renewing": "renewing every " + renewal.String(), "original": "the original"}
	heads := []string{"REQUESTS"}
	switch {
	case e.kind.requests != nil:
		heads = upper(e.kind.requests)
	case e.billsUnits():
		heads = append(heads, "RU", "PEAK RU/S")
	}
	rows := [][]table.Cell{tableRow(table.Faint, "EACH DAY", heads)}
	for _, d := range e.days {
		figures := []string{grouped(d.cost[inRequests])}
		switch {
		case e.kind.requests != nil:
			whole := d.cost
			for i := range whole {
				whole[i] = math.Round(whole[i])
			}
			figures = amounts(whole[inPuts:][:len(heads)])
		case e.billsUnits():
			figures = append(figures, grouped(d.cost[inUnits]), units(d.peak))
		}
		rows = append(rows, tableRow(table.Plain, names[d.protocol], figures))
	}
	return rows
}

// leastThroughput is the least throughput of a container, in RU/s. Init provisions it.
const leastThroughput = 400

// verdict shows the peak, and the throughput that carries it, if that is billed; and how much is kept.
func (e Estimate) verdict() []string {
	often := grouped(e.slotsPerDay) + " slots a day"
	if e.slotsPerDay < 1.5 {
		often = "A slot every " + grouped(24/e.slotsPerDay) + " hours"
	}
	if e.turns.Lead >= time.Second && e.billsUnits() {
		often += fmt.Sprintf(". Over the lead of %v before each, %s RU/s on average", e.turns.Lead, units(e.overLead()))
	}
	trims, by := fmt.Sprintf("trims, at once: %s RU within about a second", units(e.trim[inUnits])), "slots"
	if !e.billsUnits() {
		trims = fmt.Sprintf("deletes the %d oldest records, at once", e.Timing.TrimEvery)
	}
	if e.parts.several() {
		by = "records"
	}
	lines := []string{often + ".", fmt.Sprintf("Every %d %s the winner %s.", e.Timing.TrimEvery, by, trims)}
	if short := e.tooShort(); short != "" {
		lines = slices.Insert(lines, 0, short)
	}
	if e.parts.several() {
		lines = append(lines, fmt.Sprintf("A slot has %s parts: the winner appends for each, and the others read as often.", grouped(e.parts.n)))
	}
	if k := e.kept; e.kind.requests != nil {
		return append(lines,
			fmt.Sprintf("It keeps %s to %s records, and %s in its roster:", grouped(k.Records), grouped(k.AtMost), counted(e.Workers, "presence")),
			"about "+size(k.Bytes)+".")
	}
	if e.Unbilled {
		return lines
	}
	peak := e.days[0].peak
	if peak <= leastThroughput {
		return append(lines, fmt.Sprintf("%d RU/s carry the peak. Trimming that is throttled goes on when it may.", leastThroughput))
	}
	return append(lines,
		fmt.Sprintf("%d RU/s don't carry the peak: have %s, or give the workers different priorities,",
			leastThroughput, grouped(math.Ceil(peak/100)*100)),
		"or a longer --lead and --step. A worker that is throttled waits and asks again, if the lead leaves time.")
}

func upper(names []string) []string { return strings.Fields(strings.ToUpper(strings.Join(names, " "))) }

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(float64(n)) + " " + thing + "s"
}

// amounts are how many there are of each in a slot, or "-".
func amounts(all []float64) (texts []string) {
	for _, n := range all {
		text := strconv.FormatFloat(n, 'f', 2, 64)
		switch {
		case n == 0:
			text = table.None
		case n == math.Trunc(n):
			text = grouped(n)
		}
		texts = append(texts, text)
	}
	return texts
}

// units are request units, with one decimal where that matters.
func units(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return grouped(n)
}

// grouped is a whole number with its thousands set off.
func grouped(n float64) string {
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// size is a number of bytes, in units of 1,000.
func size(bytes float64) string {
	if bytes < 1e6 {
		return grouped(bytes/1e3) + " kB"
	}
	return strconv.FormatFloat(bytes/1e6, 'f', 1, 64) + " MB"
}
