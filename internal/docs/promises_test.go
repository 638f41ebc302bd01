package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each promise has a test that the gate runs, and a step of make prove, of which it is told when it was green last, and how often.
func TestEachPromiseIsProvedTwice(t *testing.T) {
	const begin, end = "<!-- promises: begin -->\n", "<!-- promises: end -->"
	const header = "| What is promised | Test in the gate | Step of `make prove` | Green last |"
	out, err := exec.Command("bash", filepath.Join(root, ".ci/prove"), "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	gate := read(t, ".ci/run").text
	steps, counts := strings.Split(string(out), "\n"), map[string]string{}
	for line := range strings.Lines(read(t, "internal/suites/proved.tsv").text) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 4 {
			counts[f[0]] = fmt.Sprintf("%s, %s of %s", f[3], f[2], f[1])
		}
	}
	p := read(t, "docs/proofs.md")
	want := header + "\n|---|---|---|---|\n"
	for _, row := range p.table(t, header) {
		if len(row) != 4 {
			continue // the end
		}
		folder, name, _ := strings.Cut(strings.Trim(row[1], "`"), " ")
		body := regexp.MustCompile(`(?ms)^func ` + name + `\(\w+ \*testing\.T\) \{(.*?)^\}`).FindString(sourceOf(t, folder))
		asks := strings.Contains(body, "suites.RealTime(") || strings.Contains(body, "suites.Prove(")
		if body == "" || asks && !strings.Contains(gate, "'^"+name+"$'") {
			t.Errorf("%s: %s is no test that the gate runs", row[0], row[1])
		}
		if !slices.Contains(steps, row[2]) {
			t.Errorf("%s: make prove has no step %q", row[0], row[2])
		}
		want += fmt.Sprintf("| %s | %s | %s | %s |\n", row[0], row[1], row[2], counts[row[2]])
	}
	before, rest, _ := strings.Cut(p.text, begin)
	was, after, ok := strings.Cut(rest, end)
	if ok && was != want && *update {
		if err := os.WriteFile(filepath.Join(root, p.path), []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("%s has another table of promises than\n%s\nwrite it with: go test ./internal/docs -run Promise -update", p.path, want)
	}
}

// sourceOf is the source of the tests in a folder.
func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no tests: %v", folder, err)
	}
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		all.Write(b)
	}
	return all.String()
}
