package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what this test reads of a workflow of GitHub's.
type workflow struct {
	Jobs map[string]struct {
		Strategy struct {
			Matrix struct {
				Version []string
				Include []struct{ Name string }
			}
		}
	}
}

// The versions of servers that docs/upgrading.md says GitHub's workflows run are those of the workflows.
func TestVersionsThatAreSaidToRunAreThoseOfTheWorkflows(t *testing.T) {
	var ci workflow
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yml").text), &ci); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, job := range []string{"servers", "named"} {
		for _, m := range ci.Jobs[job].Strategy.Matrix.Include {
			if name, version, ok := strings.Cut(m.Name, " "); ok && !slices.Contains(want[name], version) {
				want[name] = append(want[name], version)
			}
		}
	}
	want["MongoDB"] = ci.Jobs["mongodb"].Strategy.Matrix.Version
	said := map[string][]string{}
	number := regexp.MustCompile(`\b\d+(\.\d+)?\b`)
	for _, row := range read(t, "docs/upgrading.md").table(t, "| | By `make prove`, on Debian 12 | Besides, by GitHub's workflows ¹ |") {
		if _, ok := want[row[0]]; ok {
			said[row[0]] = number.FindAllString(row[2], -1)
		}
	}
	if !maps.EqualFunc(said, want, slices.Equal) {
		t.Errorf("docs/upgrading.md says that these run: %v\nand the workflows run %v", said, want)
	}
}

// Tests that pages name as evidence exist.
func TestEvidenceExists(t *testing.T) {
	tests := source(t, true, "")
	for _, path := range []string{"docs/upgrading.md", "docs/production.md"} {
		for _, name := range regexp.MustCompile("`(Test[A-Z]\\w*)`").FindAllStringSubmatch(read(t, path).text, -1) {
			if !strings.Contains(tests, "\nfunc "+name[1]+"(") {
				t.Errorf("%s names %s, which doesn't exist", path, name[1])
			}
		}
	}
}
