package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// chart draws who held the slots of worker types, on one axis of store time. It is pure.
type chart struct {
	from, to, now time.Time
	rows          []chartRow
	width         int // of a line
}

// chartRow is a worker type, with its slots from the oldest on, and what else there is to say.
type chartRow struct {
	workerType string
	entries    []history.Entry
	note       string
}

// mark is what a column shows of a worker type. Of what falls into one column the largest shows: a slot
// that nobody had is never hidden.
type mark int

const (
	nothing mark = iota
	idle
	claimed
	held
	skipped
	failed
	nobody
)

// cell is a column of a row.
type cell struct {
	mark   mark
	holder string
}

// letters name the holders in the chart, and other what there is no letter for.
const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	other   = "?"
)

// holderColours are those of the holders, by their letters.
var holderColours = []table.Colour{table.Green, table.Cyan, table.Yellow, table.Blue, "35"}

// The signs of the marks, and of the axis.
const (
	signBar, signClaimed, signSkipped, signFailed = "━", "┄", "»", "✗"
	signIdle, signNobody, signTick, signNow       = "_", "·", "┬", "▼"
)

// text is the chart, its axis, and the legend.
func (c chart) text(colours bool) string {
	names, most := make([]string, len(c.rows)), 0
	for i, r := range c.rows {
		names[i] = display.Clip(display.Line(r.workerType), max(c.width/3, 8))
		most = max(most, display.Width(names[i]))
	}
	columns := max(c.width-most-2, 8)
	cells := make([][]cell, len(c.rows))
	for i, r := range c.rows {
		cells[i] = c.cells(r.entries, columns)
	}
	named := c.holders(cells)
	var b strings.Builder
	for _, line := range c.axis(columns) {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", most+2), table.Paint(colours, table.Faint, strings.TrimRight(line, " ")))
	}
	for i, row := range cells {
		pad := strings.Repeat(" ", most+2-display.Width(names[i]))
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(names[i]+pad+c.bar(row, named, colours), " "))
	}
	fmt.Fprintf(&b, "\n%s\n", c.legend(named, colours))
	return b.String()
}

// cells are the columns of a worker type.
func (c chart) cells(entries []history.Entry, columns int) []cell {
	row := make([]cell, columns)
	for _, e := range entries {
		for _, s := range c.stretches(e) {
			if !s.start.Before(s.end) {
				continue
			}
			first, last := max(c.column(s.start, columns), 0), min(c.column(s.end.Add(-1), columns), columns-1)
			for i := first; i <= last; i++ {
				if s.mark >= row[i].mark {
					row[i] = cell{s.mark, holderOf(e)}
				}
			}
		}
	}
	return row
}

// stretch is a part of the time of an entry.
type stretch struct {
	start, end time.Time
	mark       mark
}

// stretches are the parts of an entry: what was held, what was given back before its end and is nobody's unless
// another entry shows who took it, and the moment at which the work failed.
func (c chart) stretches(e history.Entry) (all []stretch) {
	start, end := e.Window.Start, e.Window.End
	for _, over := range []time.Time{e.ReleasedAt, e.OverriddenAt} {
		if !over.IsZero() && over.Before(end) {
			end = over
		}
	}
	if e.CaughtUp() {
		all = append(all, stretch{e.Slot.Start, e.Slot.End, nobody}) // as it was then
	}
	switch e.State {
	case history.Missed:
		return []stretch{{e.Slot.Start, e.Slot.End, nobody}}
	case history.Skipped: // What ran then shows as held.
		return []stretch{{e.Slot.Start, e.Slot.Start.Add(1), skipped}}
	case history.Free: // Somebody may yet claim it.
		return []stretch{{e.Slot.Start, c.now, nobody}}
	case history.Upcoming:
		return []stretch{{start, end, claimed}}
	case history.Failed:
		at := e.Outcome.Ended
		if !e.OutcomeKnown || at.IsZero() || !at.Before(end) || at.Before(start) {
			at = end.Add(-1)
		}
		if at.After(c.now) {
			at = c.now.Add(-1)
		}
		all = append(all, stretch{at, at.Add(1), failed})
	case history.Held, history.Expired, history.Released, history.Overridden, history.Done:
	case history.Poison:
		return nil
	default:
		return nil // No slot.
	}
	if e.Record.Kind == store.KindDone { // Who made up for it had another slot.
		return []stretch{{e.Slot.Start, e.Slot.End, held}}
	}
	return append(all, stretch{start, end, held}, stretch{end, e.Window.End, idle})
}

// holders are those that show, each with its letter: the place in the list.
func (c chart) holders(cells [][]cell) (named []string) {
	for _, row := range cells {
		for _, x := range row {
			if x.holder != "" && x.mark > idle && x.mark != nobody && !slices.Contains(named, x.holder) {
				named = append(named, x.holder)
			}
		}
	}
	slices.Sort(named)
	return named
}

// letter is that of a holder, and its colour.
func letter(named []string, holder string) (string, table.Colour) {
	i := slices.Index(named, holder)
	if i < 0 || i >= len(letters) {
		return other, table.Plain
	}
	return letters[i : i+1], holderColours[i%len(holderColours)]
}

// bar draws a row: the letter of a holder where its time begins, and a line from there on.
func (c chart) bar(row []cell, named []string, colours bool) string {
	var b strings.Builder
	shown := "" // the holder whose letter came last
	for _, x := range row {
		name, colour := letter(named, x.holder)
		sign := signBar
		switch {
		case x.mark == nothing:
			sign, colour, shown = " ", table.Plain, ""
		case x.mark == idle:
			sign, colour, shown = signIdle, table.Red, ""
		case x.mark == nobody:
			sign, colour, shown = signNobody, table.Red, ""
		case x.mark == failed:
			sign, colour = signFailed, table.Red
		case x.mark == skipped:
			sign, colour = signSkipped, table.Yellow
		case x.holder != shown:
			sign, shown = name, x.holder
		case x.mark == claimed:
			sign = signClaimed
		}
		b.WriteString(table.Paint(colours, colour, sign))
	}
	return b.String()
}

// skips reports that a slot was skipped.
func (c chart) skips() bool {
	return slices.ContainsFunc(c.rows, func(r chartRow) bool {
		return slices.ContainsFunc(r.entries, func(e history.Entry) bool { return e.State == history.Skipped })
	})
}

// legend says what the letters and signs stand for, in lines that fit.
func (c chart) legend(named []string, colours bool) string {
	var words []string
	var widths []int
	add := func(sign string, colour table.Colour, text string) {
		words = append(words, table.Paint(colours, colour, sign)+" "+text)
		widths = append(widths, display.Width(sign)+1+display.Width(text))
	}
	for i, holder := range named {
		if i == len(letters) {
			add(other, table.Plain, fmt.Sprintf("%d others", len(named)-i))
			break
		}
		sign, colour := letter(named, holder)
		add(sign, colour, display.Clip(display.Line(holder), max(c.width/2, 8)))
	}
	add(signNobody, table.Red, "nobody")
	add(signIdle, table.Red, "given back")
	add(signFailed, table.Red, "failed")
	if c.skips() {
		add(signSkipped, table.Yellow, "skipped")
	}
	add(signClaimed, table.Plain, "claimed")
	add(signNow, table.Plain, "now")
	var b strings.Builder
	taken := 0
	for i, word := range words {
		switch {
		case taken > 0 && taken+2+widths[i] > c.width:
			b.WriteString("\n")
			taken = 0
		case taken > 0:
			b.WriteString("  ")
			taken += 2
		}
		b.WriteString(word)
		taken += widths[i]
	}
	return b.String()
}
