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
	width         int  // of a line
	ascii         bool // no other characters
}

// chartRow is a worker type, with its slots from the oldest on.
type chartRow struct {
	workerType string
	entries    []history.Entry
}

// mark is what a column shows of a worker type. Of what falls into one column the largest shows: a slot
// that nobody had is never hidden.
type mark int

const (
	nothing mark = iota
	claimed
	held
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

// signs are how marks are drawn.
type signs struct{ bar, claimed, failed, nobody, tick, now string }

var (
	unicodeSigns = signs{bar: "━", claimed: "┄", failed: "✗", nobody: "·", tick: "┬", now: "▼"}
	asciiSigns   = signs{bar: "=", claimed: "-", failed: "x", nobody: ".", tick: "|", now: "v"}
)

func (c chart) signs() signs {
	if c.ascii {
		return asciiSigns
	}
	return unicodeSigns
}

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
	if c.ascii {
		return strings.NewReplacer("…", "~", "\uFFFD", "?").Replace(b.String()) // of names that were cut, or are not clean
	}
	return b.String()
}

// at is the time at which a column begins.
func (c chart) at(column, columns int) time.Time {
	return c.from.Add(c.to.Sub(c.from) / time.Duration(columns) * time.Duration(column))
}

// cells are the columns of a worker type.
func (c chart) cells(entries []history.Entry, columns int) []cell {
	row := make([]cell, columns)
	for _, e := range entries {
		start, end, m := c.stretch(e)
		for i := range row {
			if !c.at(i, columns).Before(end) || !start.Before(c.at(i+1, columns)) || m == nothing {
				continue
			}
			switch x := &row[i]; {
			case m == failed && c.at(i+1, columns).Before(end) && x.mark <= held:
				*x = cell{held, holderOf(e)} // The sign stands at its end.
			case m >= x.mark:
				*x = cell{m, holderOf(e)}
			}
		}
	}
	return row
}

// stretch is from when to when an entry has an effect, and which. What is claimed may be given back before, and
// somebody may yet claim what is free.
func (c chart) stretch(e history.Entry) (start, end time.Time, m mark) {
	start, end = e.Window.Start, e.Window.End
	for _, over := range []time.Time{e.ReleasedAt, e.OverriddenAt} {
		if !over.IsZero() && over.Before(end) {
			end = over
		}
	}
	switch e.State {
	case history.Missed:
		return e.Slot.Start, e.Slot.End, nobody
	case history.Free:
		return e.Slot.Start, c.now, nobody
	case history.Upcoming:
		return start, end, claimed
	case history.Failed:
		m = failed
	case history.Held, history.Expired, history.Released, history.Overridden, history.Done:
		m = held
	case history.Poison:
	}
	if e.Record.Kind == store.KindDone && m == held { // Who made up for it had another slot.
		return e.Slot.Start, e.Slot.End, m
	}
	if !start.Before(end) {
		m = nothing
	}
	return start, end, m
}

// holders are those that show, each with its letter: the place in the list.
func (c chart) holders(cells [][]cell) (named []string) {
	for _, row := range cells {
		for _, x := range row {
			if x.holder != "" && x.mark != nobody && !slices.Contains(named, x.holder) {
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
	s := c.signs()
	var b strings.Builder
	for i, x := range row {
		name, colour := letter(named, x.holder)
		sign := s.bar
		begins := i == 0 || row[i-1].holder != x.holder || row[i-1].mark == nobody || row[i-1].mark == nothing
		switch {
		case x.mark == nothing:
			sign, colour = " ", table.Plain
		case x.mark == nobody:
			sign, colour = s.nobody, table.Red
		case x.mark == failed:
			sign, colour = s.failed, table.Red
		case begins:
			sign = name
		case x.mark == claimed:
			sign = s.claimed
		}
		b.WriteString(table.Paint(colours, colour, sign))
	}
	return b.String()
}

// legend says what the letters and signs stand for, in lines that fit.
func (c chart) legend(named []string, colours bool) string {
	s := c.signs()
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
	add(s.nobody, table.Red, "nobody")
	add(s.failed, table.Red, "failed")
	add(s.claimed, table.Plain, "claimed")
	add(s.now, table.Plain, "now")
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
