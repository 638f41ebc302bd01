package inspect

import (
	"testing"
)

func TestAPictureFitsItsTerminal(t *testing.T) {
	for picture, want := range map[string]string{
		"abcdef\nabcde\n":                    "abcd…\nabcde\n",
		"ab\x1b[31mcdef\x1b[0mg":             "ab\x1b[31mcd…\x1b[0m",
		"\x1b[31mabc\x1b[0m\x1b[2mde\x1b[0m": "\x1b[31mabc\x1b[0m\x1b[2mde\x1b[0m",
		"工人工人":                               "工人…",
		"abcd\x1b[31mefgh\x1b[0m":            "abcd…\x1b[0m",
	} {
		if got := fitted(picture, 5); got != want {
			t.Errorf("fitted(%q) = %q, want %q", picture, got, want)
		}
	}
	if got := fitted("abcdef", 0); got != "abcdef" {
		t.Errorf("fitted() to no known width = %q", got)
	}
}
