package table

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// Wide characters take two columns, and combining ones none; hostile ones are not shown.
func TestColumnsStayInLineWhateverIsInThem(t *testing.T) {
	var rows [][]Cell
	for _, s := range []string{"plain", "工人-ｊ", "e\u0301a\u0302\u0303", "🦫🦫", "\u200b\u202ex\x1b[2J", "two\nlines\r\tand  blanks", "\xff"} {
		rows = append(rows, []Cell{Left(Green, s), Right(Plain, s), Left(Plain, "end")})
	}
	least := display.Width("two lines and blanks")
	for n, line := range Lines(rows, nil, false) {
		before, ok := strings.CutSuffix(line, "  end")
		if !ok || display.Width(before) != 2*least+2 || display.Flat(line) != line {
			t.Errorf("the row of %q is %q, want %d clean columns before the last", rows[n][0].Text, line, 2*least+2)
		}
	}
	if rows[5][0].Text != "two\nlines\r\tand  blanks" {
		t.Errorf("Lines() changed the cell to %q", rows[5][0].Text)
	}
}

func TestLines(t *testing.T) {
	rows := [][]Cell{
		{Left(Faint, "NAME"), Right(Faint, "N"), Left(Plain, "")},
		{Left(Plain, "é"), Right(Green, "10"), Left(Plain, "a note")},
	}
	for _, test := range []struct {
		least   []int
		colours bool
		want    []string
	}{
		{nil, false, []string{"NAME   N", "é     10  a note"}},
		{[]int{6, 3}, false, []string{"NAME      N", "é        10  a note"}},
		{nil, true, []string{"\x1b[2mNAME\x1b[0m   \x1b[2mN\x1b[0m", "é     \x1b[32m10\x1b[0m  a note"}},
	} {
		if got := Lines(rows, test.least, test.colours); !slices.Equal(got, test.want) {
			t.Errorf("Lines(%v, %v) = %q, want %q", test.least, test.colours, got, test.want)
		}
	}
}
