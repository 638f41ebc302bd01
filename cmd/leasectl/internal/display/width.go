package display

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is how many columns of a terminal a clean text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// columns is how many a character takes: none if it combines with the one before, two if
// Unicode calls it wide. Characters of ambiguous width are taken for narrow, as by terminals.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me), r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff:
		return 0 // the latter two are vowels and finals of Hangul syllables
	case r < 0x1100:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Clip cuts a clean text to at most so many columns, the last of which then is an ellipsis.
// Characters that combine take no column; there may be as many of them as columns.
func Clip(s string, most int) string {
	taken, count, end := 0, 0, 0
	for i, r := range s {
		taken, count = taken+columns(r), count+1
		if taken > most || count > 2*most {
			return s[:end] + "…"
		}
		if taken < most && count < 2*most {
			end = i + len(string(r))
		}
	}
	return s
}

// Wrapped are the lines of a clean text, of at most so many columns but for longer words.
func Wrapped(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && Width(line)+1+Width(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
