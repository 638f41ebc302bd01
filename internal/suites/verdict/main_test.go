package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsSkippedMustBeOnTheList(t *testing.T) {
	const events = `{"Action":"output","Package":"github.com/slotlease/slotlease/store","Test":"TestA","Output":"    a_test.go:3: began\n"}
{"Action":"output","Package":"github.com/slotlease/slotlease/store","Test":"TestA","Output":"    a_test.go:4: there is no zsh\n"}
{"Action":"skip","Package":"github.com/slotlease/slotlease/store","Test":"TestA"}
{"Action":"skip","Package":"github.com/slotlease/slotlease/store","Test":"TestB/part"}
{"Action":"pass","Package":"github.com/slotlease/slotlease/store","Test":"TestC","Elapsed":2.5}
{"Action":"pass","Package":"github.com/slotlease/slotlease/store","Elapsed":12}
{"Action":"skip","Package":"github.com/slotlease/slotlease/internal/race"}
`
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run{skipped: map[string]map[string]bool{}, output: map[string]string{}}
	if err := r.read(file); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string][]string{
		"# how many\n-\tthere is no \\w+\n9\tno reason\n": nil,
		"0\tthere is no \\w+\n1\tno reason\n":             {`skipped because "there is no \\w+": 1 tests, of which skips.tsv allows 0: ./store TestA`},
		"1\tis no zsh\n1\tno reason\n":                    {`skipped because "there is no zsh", which skips.tsv hasn't: ./store TestA`},
	} {
		if got, _, err := r.unlisted(list); !slices.Equal(got, want) || err != nil {
			t.Errorf("unlisted(%q) = %q, %v, want %q", list, got, err, want)
		}
	}
	for _, wrong := range []string{"there is no zsh\n", "1\t(\n"} {
		if _, _, err := r.unlisted(wrong); err == nil {
			t.Errorf("unlisted(%q) = nil, want an error", wrong)
		}
	}
	if _, got, _ := r.unlisted("1\tthere is no zsh\n2\tno reason\n"); !slices.Equal(got, []string{`skipped because "no reason": 1 tests, and skips.tsv allows 2: lower it`}) {
		t.Errorf("unlisted() finds %q to lower, want one", got)
	}
	var told strings.Builder
	r.tell(&told)
	if want := "the slowest tests:\n    2.5s  ./store TestC\n./store took 12 s, and should take 10: "; !strings.HasPrefix(told.String(), want) {
		t.Errorf("tell() = %q, want %q", told.String(), want)
	}
}
