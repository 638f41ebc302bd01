package suites

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostRealTime is how many tests realtime.tsv may have. It only gets smaller.
const mostRealTime = 19

// Each line of realtime.tsv has a test that asks, each test that asks has a line, and no other test has its name.
func TestTheListOfRealTimeIsThatOfTheTestsThatAsk(t *testing.T) {
	want, named := map[string]bool{}, map[string]bool{}
	for _, each := range listed() {
		if want[each.folder+" "+each.test] {
			t.Errorf("%s stands twice in realtime.tsv", each.test)
		}
		want[each.folder+" "+each.test], named[each.test] = true, true
	}
	if lines := strings.Count(realTime, "\n./"); len(want) != lines {
		t.Errorf("realtime.tsv has %d lines that begin with a folder, and %d with a folder, a test and why", lines, len(want))
	}
	if len(want) > mostRealTime {
		t.Errorf("realtime.tsv has %d tests, and may have %d: judge a new test in a bubble, or by facts", len(want), mostRealTime)
	}
	got := map[string]bool{}
	for folder, source := range tests(t) {
		for _, f := range regexp.MustCompile(`(?ms)^func (Test\w+)\(\w+ \*testing\.T\) \{(.*?)^\}`).FindAllStringSubmatch(source, -1) {
			switch {
			case strings.Contains(f[2], "suites."+"RealTime(t)"):
				got[folder+" "+f[1]] = true
			case named[f[1]]:
				t.Errorf("%s has a test of the name %s, too: make prove-pure would leave it out", folder, f[1])
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the tests that ask: %v\nrealtime.tsv: %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// tests returns the source of all tests of this module, by folder.
func tests(t *testing.T) map[string]string {
	t.Helper()
	all, root := map[string]string{}, filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(path, "_test.go") {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			folder, _ := filepath.Rel(root, filepath.Dir(path))
			all["./"+filepath.ToSlash(folder)] += string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
