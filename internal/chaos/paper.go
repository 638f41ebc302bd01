//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// paper is what a report is written on: titles, and rows of cells below each other.
type paper struct {
	to    io.Writer
	cells *tabwriter.Writer
}

func newPaper(to io.Writer) *paper {
	return &paper{to: to, cells: tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)}
}

func (p *paper) row(cells ...any) {
	var text []string
	for _, c := range cells {
		text = append(text, fmt.Sprint(c))
	}
	_, _ = fmt.Fprintln(p.cells, strings.Join(text, "\t"))
}

func (p *paper) title(text string) {
	_ = p.cells.Flush()
	_, _ = fmt.Fprintf(p.to, "\n%s\n", text)
}

// end writes what was wrong or, if nothing was, what that means.
func (p *paper) end(wrong []string, fine string) {
	if len(wrong) == 0 {
		p.title(fine)
		return
	}
	p.title("WRONG")
	for _, text := range wrong {
		p.row("  " + text)
	}
	_ = p.cells.Flush()
}
