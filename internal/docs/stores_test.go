package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The lines of each store in docs/stores.md are about those that it has, so that a store which grows is listed anew.
func TestTheLinesOfStoresAreAsListed(t *testing.T) {
	page := read(t, "docs/stores.md")
	rows := page.table(t, "| Store | Append | Tail | Time ± | Share of 10 s | Share of 5 min | Lines |")
	if len(rows) < 10 {
		t.Errorf("docs/stores.md has figures of %d stores, want all", len(rows))
	}
	shared := regexp.MustCompile("without `(store/storekit)` \\(([0-9,]+)\\)").FindStringSubmatch(page.text)
	if shared == nil {
		t.Fatal("docs/stores.md doesn't say how many lines the stores share")
	}
	for _, row := range append(rows, shared[1:]) {
		name := strings.Trim(strings.Fields(row[0])[0], "`")
		listed, err := strconv.Atoi(strings.ReplaceAll(row[len(row)-1], ",", ""))
		if err != nil {
			t.Errorf("the lines of %s: %v", name, err)
		}
		files, err := filepath.Glob("../../" + name + "/*")
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", name, err)
		}
		lines := 0
		for _, file := range files {
			if ext := filepath.Ext(file); ext != ".go" && ext != ".lua" || strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		if off := lines - listed; off < -listed/10 || off > listed/10 {
			t.Errorf("docs/stores.md lists %d lines of %s, which has %d", listed, name, lines)
		}
	}
}
