package display

import (
	"fmt"
	"strings"
)

// plain are characters that mean nothing to any shell, wherever they stand in a word.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+:,./-"

// Word is a text as one word of a command that is to be pasted into a shell: on one line and
// without a [Hidden] character, whatever the text has. What can't be shown so within single
// quotes is written as what printf makes of it. It reports false for a text that no such word
// gives: one with NUL, or with a line feed at its end.
//
// A leading dash stays one. A word belongs after an option that takes a value, which it then
// is, whatever it begins with.
func Word(s string) (string, bool) {
	switch {
	case strings.ContainsRune(s, 0), strings.HasSuffix(s, "\n"):
		return "", false
	case s != "" && strings.Trim(s, plain) == "":
		return s, true
	case Flat(s) == s:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
	}
	var b strings.Builder
	for i := range len(s) {
		// Within double quotes, shells replace ! even inside single ones; and printf takes what
		// begins with a dash for its option.
		if strings.IndexByte(plain, s[i]) < 0 || s[i] == '-' {
			fmt.Fprintf(&b, `\%03o`, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return `"$(printf '` + b.String() + `')"`, true
}
