package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/figures"
)

// page is a file with a text between the marks.
func page(between string) string {
	return "# Title\n\nBefore.\n\n" + begin + between + end + "\n\nAfter | it.\n"
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func save(t *testing.T, dir string, proofs ...figures.Proof) {
	t.Helper()
	t.Setenv(figures.Variable, dir)
	for _, p := range proofs {
		if err := figures.Save(p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheTableComesBetweenTheMarksInItsOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "figures")
	proof := func(name string) figures.Proof {
		return figures.Proof{Name: name, Command: "make " + name, Figures: []figures.Figure{{What: "runs", Value: "3"}}}
	}
	model := proof("model")
	model.Command = "a | b"
	model.Figures = append(model.Figures, figures.Figure{What: "states|all", Value: "1\n2"})
	save(t, dir, proof("zeta"), model, proof("alpha"), proof("simulation"))
	want := page(`
| Proof | Figures | Repeat with |
|---|---|---|
| simulation | runs: 3 | ` + "`make simulation`" + ` |
| model | runs: 3; states\|all: 1 2 | ` + "`a \\| b`" + ` |
| alpha | runs: 3 | ` + "`make alpha`" + ` |
| zeta | runs: 3 | ` + "`make zeta`" + ` |
`)
	for _, between := range []string{"", "\n", "\n| an older table |\n"} {
		readme := write(t, filepath.Join(t.TempDir(), "README.md"), page(between))
		for range 2 { // the second time changes nothing
			if err := run([]string{dir, readme}); err != nil {
				t.Fatalf("run over %q = %v", between, err)
			}
			if diff := cmp.Diff(want, read(t, readme)); diff != "" {
				t.Errorf("file over %q (-want +got):\n%s", between, diff)
			}
		}
	}
}

func TestProofsOfAKindWithTheSameFiguresStandSideBySide(t *testing.T) {
	proof := func(name, overlaps string, more ...figures.Figure) figures.Proof {
		return figures.Proof{Name: name, Command: "make " + name, Figures: append([]figures.Figure{{What: "overlaps", Value: overlaps}}, more...)}
	}
	got := table([]figures.Proof{proof("chaos-a", "0"), proof("model", "0"), proof("chaos-b", "1|2"), proof("chaos-c", "3", figures.Figure{What: "slots", Value: "4"})})
	want := `| Proof | Figures | Repeat with |
|---|---|---|
| model | overlaps: 0 | ` + "`make model`" + ` |
| chaos-c | overlaps: 3; slots: 4 | ` + "`make chaos-c`" + ` |

| chaos | a | b |
|---|---|---|
| overlaps | 0 | 1\|2 |
| repeat with | ` + "`make chaos-a` | `make chaos-b`" + ` |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongIsSaidAndNothingIsWritten(t *testing.T) {
	good := t.TempDir()
	save(t, good, figures.Proof{Name: "model", Command: "make model", Figures: []figures.Figure{{What: "states", Value: "1"}}})
	bad := t.TempDir()
	write(t, filepath.Join(bad, "one.json"), "{")
	write(t, filepath.Join(bad, "two.json"), `{"name": "two"}`)
	for _, c := range []struct {
		name, dir, text string
		want            []string
	}{
		{"no marks", good, "# Title\n", []string{"README.md", begin, end}},
		{"no end", good, begin, []string{end}},
		{"the end first", good, end + begin, []string{begin}},
		{"two begins", good, begin + page(""), []string{"once"}},
		{"two ends", good, page("") + end, []string{"once"}},
		{"an empty directory", t.TempDir(), page(""), []string{"no *.json", figures.Variable}},
		{"no directory", filepath.Join(bad, "none"), page(""), []string{"no *.json"}},
		{"bad JSON", bad, page(""), []string{"one.json", "unexpected end", "two.json", "command"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			readme := write(t, filepath.Join(t.TempDir(), "README.md"), c.text)
			err := run([]string{c.dir, readme})
			if err == nil {
				t.Fatal("run = nil, want an error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("run = %q, want %q in it", err, want)
				}
			}
			if got := read(t, readme); got != c.text {
				t.Errorf("file = %q, want it unchanged: %q", got, c.text)
			}
		})
	}
	if err := run([]string{good}); err == nil {
		t.Error("run(DIR) = nil, want an error")
	}
	if err := run([]string{good, filepath.Join(good, "none.md")}); err == nil {
		t.Error("run without a file = nil, want an error")
	}
}
