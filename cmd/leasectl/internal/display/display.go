// Package display makes texts of what may come from outside, such as the records of a
// ledger, fit for a terminal, a shell and JSON. A ledger may hold anything.
//
// [Hidden] alone decides which characters are never written as they are; all else here goes
// by it. A [Writer] stands in front of both outputs of leasectl, so that nothing passes it
// by; tables, titles and lines are cleaned before, since a Writer can't know what was meant
// to be one line.
package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character could move the cursor, give a terminal an order, change
// the direction of text, or not be seen: control characters (C0, DEL, C1), all that Unicode
// calls format characters (bidirectional, zero-width), separators of lines and paragraphs,
// spaces other than the usual one, variation selectors, fillers and combining characters
// without a form, private and unassigned characters, and halves of surrogate pairs.
func Hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// mark stands for a character, or a byte that isn't UTF-8, which was hidden.
const mark = utf8.RuneError

// Text is a text of several lines with a mark for each [Hidden] character but line feeds, and
// for each byte that isn't UTF-8.
func Text(s string) string { return cleaned(s, "\n") }

// Flat is Text on one line: line feeds are marked, too.
func Flat(s string) string { return cleaned(s, "") }

// Line is Flat with a blank for each run of white space. It is for prose.
func Line(s string) string { return Flat(strings.Join(strings.Fields(s), " ")) }

func cleaned(s, kept string) string {
	return strings.Map(func(r rune) rune {
		if Hidden(r) && !strings.ContainsRune(kept, r) {
			return mark
		}
		return r
	}, s)
}

// Quote is a text as %q shows it, with an escape for every [Hidden] character: nothing in it
// is lost, and nothing outside it is forged.
func Quote(s string) string {
	var b strings.Builder
	for _, r := range strconv.Quote(s) {
		switch {
		case !Hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Clock is a store time without its date.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05.000Z") }
