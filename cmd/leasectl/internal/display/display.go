// Package display makes texts of what may come from outside, such as the records of a
// ledger, fit for a terminal, a shell and JSON. A ledger may hold anything.
//
// [Hidden] alone decides which characters are never written as they are; all else here goes
// by it. A [Writer] stands in front of both outputs of leasectl, so that nothing passes it
// by; tables, titles and lines are cleaned before, since a Writer can't know what was meant
// to be one line.
package display

import (
	"errors"
	"fmt"
	"io/fs"
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
// without a form, letters and symbols without ink, private and unassigned characters, and
// halves of surrogate pairs.
func Hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, inkless)
}

// inkless are what Unicode calls letters, marks and symbols, but draws as a blank or not at
// all: they would forge columns.
var inkless = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}, // braille pattern without dots
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // blanks of hieroglyphs
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // Khitan filler
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical symbol without a notehead
	},
}

// WithoutPath is an error of a file without the file's name, which is shown already.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
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

// When is a store time as seen from another: with its date if it is a day off or more.
func When(t, now time.Time) string {
	if t.Sub(now).Abs() >= 24*time.Hour {
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return Clock(t)
}

// Brief is a duration to as many digits as matter, such as 250ms, 1.5s or 1h37m.
func Brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	text := d.Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

// Count is a number of things, such as 1 slot or 2 slots.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
