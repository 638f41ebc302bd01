package tally

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/metrics.md")

const heading = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"

// table is the table of metrics in docs/metrics.md.
func table() string {
	var b strings.Builder
	for _, in := range all {
		labels := ""
		if in.Label != "" {
			labels = in.Label
		}
		help := strings.TrimSuffix(in.Help, ".")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", in.PrometheusName(), in.Kind, labels, help)
	}
	return b.String()
}

func TestTheDocumentationListsAllMetrics(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), heading)
	got, rest, _ := strings.Cut(after, "\n\n")
	if !found {
		t.Fatalf("docs/metrics.md has no table that begins with\n%s", heading)
	}
	want := strings.TrimSuffix(table(), "\n")
	if *update && got != want {
		if err := os.WriteFile(path, []byte(before+heading+want+"\n\n"+rest), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("docs/metrics.md lists\n%s\nwant (go test ./workerlease/internal/tally -update)\n%s", got, want)
	}
}

func TestTheDocumentationListsAllValuesOfLabels(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "### Labels\n")
	section, _, _ := strings.Cut(text2, "\n### ")
	for _, in := range all {
		for _, v := range in.Values {
			if !strings.Contains(section, "`"+v+"`") {
				t.Errorf("docs/metrics.md doesn't list %s=%q of %s", in.Label, v, in.PrometheusName())
			}
		}
	}
}
