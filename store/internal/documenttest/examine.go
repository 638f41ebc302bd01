package documenttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// Lines are findings as text, one for each.
func Lines(found []store.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s: %s → %s\n", f.Level, f.Check, f.Text, f.Remedy)
	}
	return b.String()
}

// Finds fails unless a check has a level, and says something: what was found, an arrow and the remedy.
func Finds(t testing.TB, found []store.Finding, check string, level store.Level, says string) {
	t.Helper()
	i := slices.IndexFunc(found, func(f store.Finding) bool { return f.Check == check })
	if i < 0 || found[i].Level != level || !strings.Contains(Lines(found[i:i+1]), says) {
		t.Errorf("Examine() found\n%swant %s %s with %q", Lines(found), level, check, says)
	}
}

// FindsNoMore fails if a check that isn't named is not OK, or if there are two findings of one check.
func FindsNoMore(t testing.TB, found []store.Finding, checks ...string) {
	t.Helper()
	seen := map[string]bool{}
	for i, f := range found {
		if f.Check == store.CheckServerClocks && strings.HasPrefix(f.Text, "not measured: assumed") {
			continue // So it is with services whose servers can't be asked.
		}
		if f.Level != store.LevelOK && !slices.Contains(checks, f.Check) || seen[f.Check] {
			t.Errorf("Examine() found %swant nothing wrong but %q", Lines(found[i:i+1]), checks)
		}
		seen[f.Check] = true
	}
}
