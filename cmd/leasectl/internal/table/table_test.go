package table

import (
	"slices"
	"testing"
)

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
