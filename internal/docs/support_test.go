package docs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
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
				Include []struct{ Name, Steps string }
			}
		}
	}
}

// The versions of servers that docs/upgrading.md says GitHub's workflows run are those of the workflows.
func TestVersionsThatAreSaidToRunAreThoseOfTheWorkflows(t *testing.T) {
	var ci workflow
	must(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yml").text), &ci))
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

// Each step of make prove is run by one job each night, and what fails there becomes one issue.
func TestEachStepOfTheProofRunsAtNight(t *testing.T) {
	var night workflow
	must(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/prove.yml").text), &night))
	steps, err := exec.Command("bash", filepath.Join(root, ".ci/prove"), "--list").Output()
	must(t, err)
	for step := range strings.Lines(string(steps)) {
		var jobs []string
		for _, m := range night.Jobs["prove"].Strategy.Matrix.Include {
			if regexp.MustCompile(m.Steps).MatchString(strings.TrimSpace(step)) {
				jobs = append(jobs, m.Name)
			}
		}
		if len(jobs) != 1 {
			t.Errorf("%q is a step of the jobs %q, want one", strings.TrimSpace(step), jobs)
		}
	}
}

func TestAFailureIsFiledOnce(t *testing.T) {
	noted, bin := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{filepath.Join(noted, "0123456789"): "make prove: store/redis: --- FAIL: TestA\nRepeat with", filepath.Join(bin, "gh"): "#!/bin/sh\n" +
		`echo "$*" >> "$0.log"; [ "$2" != create ] || echo 7 > "$0.open"; [ "$2" != list ] || cat "$0.open" 2>/dev/null || :` + "\n"} {
		must(t, os.WriteFile(name, []byte(text), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for range 2 {
		if out, err := exec.Command("bash", filepath.Join(root, ".ci/file-issues"), noted).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	log, err := os.ReadFile(filepath.Join(bin, "gh.log"))
	must(t, err)
	const list = "issue list --state open --search 0123456789 in:title --json number --jq .[0].number // empty\n"
	if want := list + "issue create --title make prove: store/redis: --- FAIL: TestA [0123456789] --body Repeat with\n" + list + "issue comment 7 --body Repeat with\n"; string(log) != want {
		t.Errorf("gh was asked\n%s\nwant\n%s", log, want)
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
