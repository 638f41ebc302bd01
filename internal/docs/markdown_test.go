package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// page is a Markdown file; path is seen from the root.
type page struct{ path, text string }

// pages are all Markdown files that users read.
func pages(t *testing.T) []page {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/deploy/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/stores/*.md"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		paths = append(paths, found...)
	}
	var all []page
	for _, path := range paths {
		all = append(all, read(t, path))
	}
	return all
}

func read(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	return page{path, string(text)}
}

// block is a fenced block of code: its language, the line on which its text begins,
// and the text.
type block struct {
	lang string
	line int
	text string
}

// blocks are the fenced blocks of a page, in order.
func (p page) blocks() []block {
	var found []block
	var current *block
	for i, line := range strings.Split(p.text, "\n") {
		switch lang, fence := strings.CutPrefix(line, "```"); {
		case fence && current == nil:
			current = &block{lang: lang, line: i + 2}
		case fence:
			found, current = append(found, *current), nil
		case current != nil:
			current.text += line + "\n"
		}
	}
	return found
}

// prose is the page without its fenced blocks.
func (p page) prose() string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(p.text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced {
			b.WriteString(line)
		}
	}
	return b.String()
}

// table returns the rows of the table with this header, as trimmed cells.
func (p page) table(t *testing.T, header string) [][]string {
	t.Helper()
	_, text, found := strings.Cut(p.text, header+"\n")
	if !found {
		t.Fatalf("%s has no table %q", p.path, header)
	}
	text, _, _ = strings.Cut(text, "\n\n")
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		t.Fatalf("%s: the table %q is empty", p.path, header)
	}
	return rows
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
