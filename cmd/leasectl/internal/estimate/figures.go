package estimate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
)

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
		return table.None
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

// dollars is an amount of money, with as many decimals as matter.
func dollars(n float64) string {
	switch {
	case n >= 1000:
		return "$" + grouped(n)
	case n >= 1 || n == 0:
		return "$" + strconv.FormatFloat(n, 'f', 2, 64)
	case n < 0.0001:
		return "under $0.0001"
	}
	return "$" + strconv.FormatFloat(n, 'f', 4, 64)
}

// size is a number of bytes, in units of 1,000.
func size(bytes float64) string {
	if bytes < 1e6 {
		return grouped(bytes/1e3) + " kB"
	}
	return strconv.FormatFloat(bytes/1e6, 'f', 1, 64) + " MB"
}
