// Package display formats texts from outside, and times of a store, for a terminal.
package display

import (
	"strings"
	"time"
	"unicode"
)

// Printable replaces what could move the cursor or hide text on a terminal: a
// ledger may hold anything.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, s)
}

// Clock is a store time without its date.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05.000Z") }
