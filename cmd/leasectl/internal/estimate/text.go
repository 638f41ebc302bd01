package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
		b.WriteString(wrapped(text))
	}
	return b.String()
}

// title names the workers, their schedule and the store.
func (e Estimate) title() string {
	workers := fmt.Sprintf("%d workers", e.Workers)
	if e.Workers == 1 {
		workers = "1 worker"
	}
	schedule := fmt.Sprintf("%s of one type · %s", workers, e.Timing.Options.Schedule)
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

// heads are headings, the first of them aligned to the left.
func heads(first string, others ...string) []table.Cell {
	row := []table.Cell{{Text: first, Colour: table.Faint}}
	for _, name := range others {
		row = append(row, table.Cell{Text: name, Colour: table.Faint, Right: true})
	}
	return row
}

// figures are a row of a name and figures.
func figures(name string, texts ...string) []table.Cell {
	row := []table.Cell{{Text: name}}
	for _, text := range texts {
		row = append(row, table.Cell{Text: text, Right: true})
	}
	return row
}

// billsUnits reports that the store bills request units.
func (e Estimate) billsUnits() bool { return !e.Unbilled && e.tariff.kinds == nil }

func (e Estimate) slotRows() [][]table.Cell {
	rows := [][]table.Cell{e.billed(heads("EACH SLOT", "NOW", "TAIL", "APPEND", "GET", "TRIM", "DELETED", "RU"), 1)}
	if e.tariff.kinds != nil {
		rows = [][]table.Cell{heads("EACH SLOT", e.tariff.heads()...)}
	}
	for _, r := range e.rows {
		name := r.who
		switch r.who {
		case "loser":
			name = "each of " + counted(r.workers, "loser")
		case "trimming":
			name = "trimming, its share"
		}
		if e.tariff.kinds != nil {
			rows = append(rows, figures(name, e.tariff.texts(r.cost.Kinds)...))
			continue
		}
		o := r.each
		texts := []string{amount(o.Now), amount(o.Tail), amount(o.Append), amount(o.Get), amount(o.Trim), amount(o.Deleted), units(r.cost.Units)}
		rows = append(rows, e.billed(figures(name, texts...), 1))
	}
	return rows
}

// billed is a row without its last cells, which are about request units, if nothing is billed.
func (e Estimate) billed(row []table.Cell, units int) []table.Cell {
	if e.Unbilled {
		return row[:len(row)-units]
	}
	return row
}

func (e Estimate) dayRows() [][]table.Cell {
	names := map[string]string{"roster": "its roster, if kept", "renewing": "renewing every " + renewal.String(), "original": "the original"}
	rows := [][]table.Cell{e.billed(heads("EACH DAY", "REQUESTS", "RU", "PEAK RU/S"), 2)}
	if e.tariff.kinds != nil {
		rows = [][]table.Cell{heads("EACH DAY", append(e.tariff.heads(), e.billedFor("PRICE", "A MONTH")...)...)}
	}
	for _, d := range e.days {
		name := d.protocol
		if names[name] != "" {
			name = names[name]
		}
		if e.tariff.kinds != nil {
			usd := e.tariff.bill(d.cost.Kinds)
			rows = append(rows, figures(name, append(e.tariff.wholes(d.cost.Kinds), e.billedFor(dollars(usd), dollars(usd*month))...)...))
			continue
		}
		rows = append(rows, e.billed(figures(name, grouped(d.cost.Requests), grouped(d.cost.Units), units(d.peak)), 2))
	}
	return rows
}

// month is how many days a month has: 730 hours, as the calculators of clouds have it.
const month = 730.0 / 24

// billedFor are texts, if requests are billed by their kinds.
func (e Estimate) billedFor(texts ...string) []string {
	if e.tariff.priced() {
		return texts
	}
	return nil
}

// leastThroughput is the least throughput of a container, in RU/s. Init provisions it.
const leastThroughput = 400

// verdict shows the peak, and the throughput that carries it, if that is billed.
func (e Estimate) verdict() []string {
	often := grouped(e.slotsPerDay) + " slots a day"
	if e.slotsPerDay < 1.5 {
		often = "A slot every " + grouped(24/e.slotsPerDay) + " hours"
	}
	if e.turns.Lead >= time.Second && e.billsUnits() {
		often += fmt.Sprintf(". Over the lead of %v before each, %s RU/s on average", e.turns.Lead, units(e.overLead()))
	}
	trims := fmt.Sprintf("trims, at once: %s RU within about a second", units(e.trim.Units))
	if !e.billsUnits() {
		trims = fmt.Sprintf("deletes the %d oldest records, at once", e.Timing.TrimEvery)
	}
	lines := []string{often + ".", fmt.Sprintf("Every %d %s the winner %s.", e.Timing.TrimEvery, e.trimsBy(), trims)}
	if short := e.tooShort(); short != "" {
		lines = slices.Insert(lines, 0, short)
	}
	if e.parts.several() {
		lines = append(lines, fmt.Sprintf("A slot has %s parts: the winner appends for each, and the others read as often.", grouped(e.parts.n)))
	}
	if e.tariff.kinds != nil {
		return append(lines, e.keeps()...)
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

// keeps says how much the store keeps.
func (e Estimate) keeps() []string {
	lines := []string{
		fmt.Sprintf("It keeps %s to %s records, and %s in its roster:", grouped(e.kept.records), grouped(e.kept.most()), counted(e.Workers, "presence")),
		"about " + size(e.kept.bytes()),
	}
	if e.tariff.priced() {
		lines[1] += fmt.Sprintf(", for %s a month", dollars(e.storage()))
	}
	lines[1] += "."
	return lines
}

// storage is what it costs to keep that for a month, in dollars.
func (e Estimate) storage() float64 { return e.kept.bytes() / 1e9 * e.tariff.gigabyte }

// trimsBy names the unit of the distance between two trims.
func (e Estimate) trimsBy() string {
	if e.parts.several() {
		return "records"
	}
	return "slots"
}
