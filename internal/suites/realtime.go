package suites

import (
	_ "embed"
	"strings"
	"testing"
)

// realTime lists the tests that a busy machine can fail, a line each: the folder, the test, why. It may only shrink: a test
// goes from it by being judged in a bubble, or by facts that no load can change.
//
//go:embed realtime.tsv
var realTime string

// RealTime skips a test in the quick run, because a busy machine can fail it: it has an upper bound of real time, needs
// boundaries of slots to be met, or takes it for granted that something has happened after a while. It fails a test that
// isn't in realtime.tsv. make prove runs each by itself.
func RealTime(t testing.TB) {
	t.Helper()
	for _, each := range listed() {
		if each.test == t.Name() {
			Prove(t, each.why)
			return
		}
	}
	t.Fatalf("internal/suites/realtime.tsv has no line for %s", t.Name())
}

// line is one of realtime.tsv.
type line struct{ folder, test, why string }

func listed() (all []line) {
	for text := range strings.Lines(realTime) {
		if fields := strings.Split(strings.TrimSpace(text), "\t"); len(fields) == 3 {
			all = append(all, line{fields[0], fields[1], fields[2]})
		}
	}
	return all
}
