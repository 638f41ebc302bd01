package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// showPlan shows an estimate.
func (a *app) showPlan(e estimate, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(e.json())
	}
	a.printf("%s", e.drawing(a.colour()))
	return nil
}

// drawing is an estimate for people.
func (e estimate) drawing(colours bool) string {
	var b strings.Builder
	write := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n\n") }
	write(e.title())
	write(align(e.slotRows(), []int{20}, colours)...)
	write(align(e.dayRows(), []int{20}, colours)...)
	write(e.verdict()...)
	b.WriteString("Assumed:\n")
	for _, text := range e.assumptions() {
		b.WriteString(wrapped(text))
	}
	return b.String()
}

// title tells what is planned.
func (e estimate) title() string {
	workers := fmt.Sprintf("%d workers", e.workers)
	if e.workers == 1 {
		workers = "1 worker"
	}
	schedule := fmt.Sprintf("%s of one type · %s", workers, e.schedule)
	if e.cutting.failover > 0 {
		schedule += fmt.Sprintf(" · failover within %v", e.cutting.failover)
	}
	store := fmt.Sprintf("%s, read at %s consistency", e.kind, e.consistency)
	if title := schedule + " · " + store; utf8.RuneCountInString(title) <= 80 {
		return title
	}
	return schedule + "\n" + store
}

// heads are headings, the first of them aligned to the left.
func heads(names ...string) []cell {
	row := make([]cell, len(names))
	for i, name := range names {
		row[i] = cell{name, faint, i > 0}
	}
	return row
}

// figures are a row of a name and figures.
func figures(name string, texts ...string) []cell {
	row := []cell{{name, plain, false}}
	for _, text := range texts {
		row = append(row, cell{text, plain, true})
	}
	return row
}

func (e estimate) slotRows() [][]cell {
	rows := [][]cell{heads("EACH SLOT", "NOW", "TAIL", "APPEND", "GET", "TRIM", "DELETED", "RU")}
	for _, r := range e.rows {
		name := r.who
		switch r.who {
		case "loser":
			name = "each of " + counted(r.workers, "loser")
		case "trimming":
			name = "trimming, its share"
		}
		o := r.each
		texts := []string{amount(o.Now), amount(o.Tail), amount(o.Append), amount(o.Get), amount(o.Trim), amount(o.Deleted), units(r.cost.Units)}
		rows = append(rows, figures(name, texts...))
	}
	return rows
}

func (e estimate) dayRows() [][]cell {
	names := map[string]string{"renewing": "renewing every " + renewal.String(), "original": "the original"}
	rows := [][]cell{heads("EACH DAY", "REQUESTS", "RU", "PEAK RU/S")}
	for _, d := range e.days {
		name := d.protocol
		if names[name] != "" {
			name = names[name]
		}
		rows = append(rows, figures(name, grouped(d.cost.Requests), grouped(d.cost.Units), units(d.peak)))
	}
	return rows
}

// leastThroughput is the least that a container can have, in RU/s, and what init
// gives one.
const leastThroughput = 400

// verdict tells of the peak, and what it needs.
func (e estimate) verdict() []string {
	often := grouped(e.slotsPerDay) + " slots a day"
	if e.slotsPerDay < 1.5 {
		often = "A slot every " + grouped(24/e.slotsPerDay) + " hours"
	}
	if e.turns.Lead >= time.Second {
		often += fmt.Sprintf(". Over the lead of %v before each, %s RU/s on average", e.turns.Lead, units(e.overLead()))
	}
	lines := []string{
		often + ".",
		fmt.Sprintf("Every %d %s the winner trims, at once: %s RU within about a second.", trimEvery, e.trimsBy(), units(e.trim.Units)),
	}
	if e.cutting.failover > 0 {
		lines = append(lines, fmt.Sprintf("A slot has %s parts: the winner appends for each, and the others look as often.", grouped(e.cutting.parts)))
	}
	peak := e.days[0].peak
	if peak <= leastThroughput {
		return append(lines, fmt.Sprintf("%d RU/s carry the peak. Trimming that is throttled goes on when it may.", leastThroughput))
	}
	return append(lines,
		fmt.Sprintf("%d RU/s don't carry the peak: have %s, or give the workers different priorities,",
			leastThroughput, grouped(math.Ceil(peak/100)*100)),
		"or a longer --lead and --step. Who is throttled waits and asks again, if the lead leaves time.")
}

// trimsBy is what is counted between two trims.
func (e estimate) trimsBy() string {
	if e.cutting.failover > 0 {
		return "records"
	}
	return "slots"
}

// assumptions are what an estimate rests on.
func (e estimate) assumptions() []string {
	texts := []string{
		"A steady state: no races, nothing fails, nobody comes or goes.",
		fmt.Sprintf("All workers have one priority, and claim within one step of %v.", e.turns.Step),
		"Records of 1 KB: metadata comes on top. One region: each further one charges the writes again.",
		fmt.Sprintf("A write or a delete: %g RU and %g for each term of the index; a point read: %g RU (%s).",
			writeUnits, termUnits, readUnits, unitsPage),
		fmt.Sprintf("A query in one partition: %g RU, Microsoft's sample of one that returns a document; strong and bounded-staleness double what reads cost (%s).",
			queryUnits, readsPage),
		fmt.Sprintf("A replacement is a delete and a write. Terms of the index: 2 for a record (1 with mongo), %d that a renewal changes; for the original, %d of a request and %d that the winner changes.",
			renewedTerms, requestTerms, wonTerms),
		"A trim is two queries, a read of each id, and a delete for each record; with mongo, one request deletes them all. REQUESTS counts them one by one.",
	}
	if e.kind == kindMongo {
		texts = append(texts, fmt.Sprintf("Hello: %g RU; none is published. Request units are charged by Azure Cosmos DB for MongoDB (RU) only.", readUnits),
			"Not counted: each worker looks at the collection once an hour, and the driver at the servers.")
	} else {
		texts = append(texts,
			"A query of the time alone costs as much as one of a document; none is published.",
			"Not counted: each worker reads the account and the container every 10 minutes, and the SDK the account every 5: at most 576 requests a day. Those are for metadata, with a limit of their own.")
	}
	return append(texts,
		fmt.Sprintf("Renewing: the holder replaces a lock document every %v, and the others read it.", renewal),
		"The original, EShopWorld.WorkerProcess on Cosmos DB for NoSQL: in each slot each worker queries the lease, creates a request for it, and queries who won; the winner replaces the lease. The deletion of the requests by their TTL isn't counted.")
}

// wrapped is a text in lines of a terminal, as an item of a list.
func wrapped(text string) string {
	const width = 80
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString("- ")
			column = 2
		case column+1+n > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(float64(n)) + " " + thing + "s"
}

// amount is how many operations there are in a slot, or "-".
func amount(n float64) string {
	switch {
	case n == 0:
		return none
	case n == math.Trunc(n):
		return grouped(n)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
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
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	return strings.Join(groups, ",")
}

// planJSON is the JSON form of an estimate. Its names don't change.
type planJSON struct {
	Store       string         `json:"store"`
	Consistency string         `json:"consistency"`
	Workers     int            `json:"workers"`
	Schedule    string         `json:"schedule"`
	FailoverMs  int64          `json:"failoverWithinMs,omitempty"`
	Parts       float64        `json:"partsPerSlot,omitempty"`
	SlotsPerDay float64        `json:"slotsPerDay"`
	LeadMs      int64          `json:"leadMs"`
	StepMs      int64          `json:"stepMs"`
	PerSlot     []planSlotJSON `json:"perSlot"`
	PerDay      []planDayJSON  `json:"perDay"`
	LeadUnits   float64        `json:"leadRequestUnitsPerSecond"`
	Trimming    planTrimJSON   `json:"trimming"`
	Assumptions []string       `json:"assumptions"`
}

type planSlotJSON struct {
	Who        string             `json:"who"`
	Workers    int                `json:"workers,omitempty"`
	Operations map[string]float64 `json:"operations"`
	Units      float64            `json:"requestUnits"`
}

type planDayJSON struct {
	Protocol string  `json:"protocol"`
	Requests float64 `json:"requests"`
	Units    float64 `json:"requestUnits"`
	Peak     float64 `json:"peakRequestUnitsPerSecond"`
}

type planTrimJSON struct {
	EverySlots   int     `json:"everySlots"`
	EveryRecords int     `json:"everyRecords"`
	Deleted      int     `json:"deleted"`
	Units        float64 `json:"requestUnits"`
}

func (e estimate) json() planJSON {
	out := planJSON{
		Store: e.kind, Consistency: e.consistency, Workers: e.workers, Schedule: e.schedule.String(), SlotsPerDay: hundredths(e.slotsPerDay),
		LeadMs: e.turns.Lead.Milliseconds(), StepMs: e.turns.Step.Milliseconds(), LeadUnits: hundredths(e.overLead()),
		Trimming: planTrimJSON{int(max(1, math.Round(trimEvery/e.cutting.parts))), trimEvery, trimEvery, hundredths(e.trim.Units)}, Assumptions: e.assumptions(),
	}
	if e.cutting.failover > 0 {
		out.FailoverMs, out.Parts = e.cutting.failover.Milliseconds(), e.cutting.parts
	}
	for _, r := range e.rows {
		out.PerSlot = append(out.PerSlot, planSlotJSON{r.who, r.workers, r.each.named(), hundredths(r.cost.Units)})
	}
	for _, d := range e.days {
		out.PerDay = append(out.PerDay, planDayJSON{d.protocol, math.Round(d.cost.Requests), hundredths(d.cost.Units), hundredths(d.peak)})
	}
	return out
}

// named are the operations that there are, by their names.
func (o operations) named() map[string]float64 {
	all := map[string]float64{"now": o.Now, "tail": o.Tail, "append": o.Append, "get": o.Get, "trim": o.Trim, "deleted": o.Deleted}
	for name, n := range all {
		if all[name] = math.Round(n*1000) / 1000; n == 0 {
			delete(all, name)
		}
	}
	return all
}
