package inspect

import (
	"cmp"
	"slices"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
)

// column is a column of a table.
type column struct {
	name   string
	right  bool                                    // aligned to the right
	hidden bool                                    // also if there is something in it
	kept   bool                                    // also if there is nothing in it
	most   int                                     // columns of a cell; 0: mostColumns
	blank  bool                                    // where there is nothing, nothing stands for it
	colour func(row int, text string) table.Colour // nil: plain
}

// mostColumns bounds what a hostile record can make of a table.
const mostColumns = 120

// grid lays out texts in columns, below their names. Columns with nothing in them are left out.
func grid(columns []column, texts [][]string) [][]table.Cell {
	rows := make([][]table.Cell, len(texts)+1)
	for i, c := range columns {
		filled := slices.ContainsFunc(texts, func(row []string) bool { return row[i] != "" })
		if c.hidden || !filled && !c.kept {
			continue
		}
		rows[0] = append(rows[0], table.Cell{Text: c.name, Colour: table.Faint, Right: c.right})
		for n, row := range texts {
			cell := table.Cell{Text: display.Clip(display.Line(row[i]), cmp.Or(c.most, mostColumns)), Right: c.right}
			if c.colour != nil {
				cell.Colour = c.colour(n, row[i])
			}
			if cell.Text == "" && !c.blank {
				cell.Text = table.None
			}
			rows[n+1] = append(rows[n+1], cell)
		}
	}
	return rows
}

// always is a column's colour, whatever is in it.
func always(c table.Colour) func(int, string) table.Colour {
	return func(int, string) table.Colour { return c }
}
