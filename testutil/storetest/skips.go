package storetest

import (
	"regexp"
	"strings"
	"testing"
)

// announcement is what the harness of a suite says of skips. root is the name of the test that called the suite.
type announcement struct {
	root  string
	skips map[string]string
}

// heed fails a test of the suite at its end if it was skipped and the harness doesn't say why.
func (a announcement) heed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Skipped() {
			return
		}
		name := strings.TrimPrefix(t.Name(), a.root+"/")
		if why := a.whySkipped(name); why != "" {
			t.Logf("as the harness says: %s", why)
			return
		}
		t.Errorf("skipped, which the harness doesn't announce: its Skips must say why for %q", name)
	})
}

// whySkipped is why the harness says that a test is skipped; empty if it doesn't say so.
func (a announcement) whySkipped(name string) string {
	for pattern, why := range a.skips {
		// In the names of tests, spaces are underscores.
		text := strings.ReplaceAll(regexp.QuoteMeta(strings.ReplaceAll(pattern, " ", "_")), `\*`, ".*")
		if regexp.MustCompile("^" + text + "(/.*)?$").MatchString(name) {
			return why
		}
	}
	return ""
}

// part runs a part of a case.
func (b *bench) part(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		b.says.heed(t)
		f(t)
	})
}
