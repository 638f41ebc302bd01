package main

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A cell is a text in a table, with the colour that it has on a terminal.
type cell struct {
	text   string
	colour colour
	right  bool // aligned to the right
}

// colour is an ANSI colour or weight, or none.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
	cyan   colour = "36"
)

// paint colours a text, if colours are wanted.
func paint(on bool, c colour, text string) string {
	if !on || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// align lays out rows in columns, at least as wide as given, two blanks apart.
func align(rows [][]cell, least []int, colours bool) []string {
	widths := slices.Clone(least)
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			switch {
			case c.right:
				b.WriteString(pad + paint(colours, c.colour, c.text))
			case i == len(row)-1:
				b.WriteString(paint(colours, c.colour, c.text))
			default:
				b.WriteString(paint(colours, c.colour, c.text) + pad)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// printable replaces what could move the cursor or hide text on a terminal: a
// ledger may hold anything.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, s)
}
