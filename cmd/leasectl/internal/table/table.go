// Package table lays out text in columns, with colours for a terminal.
package table

import (
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// Cell is a text in a table.
type Cell struct {
	Text   string
	Colour Colour
	Right  bool // aligned to the right
}

// Left is a cell that is aligned to the left.
func Left(c Colour, text string) Cell { return Cell{Text: text, Colour: c} }

// Right is a cell that is aligned to the right.
func Right(c Colour, text string) Cell { return Cell{Text: text, Colour: c, Right: true} }

// None is the text of a cell that has nothing to show.
const None = "-"

// Colour is an ANSI colour or weight, or Plain.
type Colour string

// The colours.
const (
	Plain  Colour = ""
	Bold   Colour = "1"
	Faint  Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Blue   Colour = "34"
	Cyan   Colour = "36"
)

// Paint colours a text, if colours are wanted.
func Paint(colours bool, c Colour, text string) string {
	if !colours || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Lines lays out rows in columns, two blanks apart. A column is as wide as its longest
// text, and at least as wide as least demands. Texts may be from outside: each is made one
// line that a terminal shows as it is read, without two blanks in a row.
func Lines(rows [][]Cell, least []int, colours bool) []string {
	widths := slices.Clone(least)
	clean := make([][]Cell, len(rows))
	for n, row := range rows {
		clean[n] = slices.Clone(row)
		for i := range row {
			c := &clean[n][i]
			c.Text = display.Line(c.Text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], display.Width(c.Text))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range clean {
		var b strings.Builder
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-display.Width(c.Text))
			switch {
			case c.Right:
				b.WriteString(pad + Paint(colours, c.Colour, c.Text))
			case i == len(row)-1:
				b.WriteString(Paint(colours, c.Colour, c.Text))
			default:
				b.WriteString(Paint(colours, c.Colour, c.Text) + pad)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
