package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links to files and headings of this repository lead somewhere. Addresses of other
// sites are not asked.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(target, "#")
			path = filepath.Join(filepath.Dir(p.path), path)
			if strings.HasPrefix(target, "#") {
				path = p.path
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: %s: there is no %s", p.path, m[0], path)
				continue
			}
			if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s: %s: %s has no such heading", p.path, m[0], path)
			}
		}
	}
}

// anchors are the names that GitHub gives the headings of a page.
func anchors(p page) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(p.prose()) {
		hashes, heading, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.Trim(hashes, "#") != "" {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, heading)] = true
	}
	return found
}

// A README that has to be scrolled is not read.
func TestReadmeIsShort(t *testing.T) {
	if lines := strings.Count(read(t, "README.md").text, "\n"); lines > 200 {
		t.Errorf("README.md has %d lines, want 200 at most", lines)
	}
}

func TestEveryPageIsInTheIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.path, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(index.text, "]("+name+")") {
			t.Errorf("docs/README.md doesn't link to %s", name)
		}
	}
}
