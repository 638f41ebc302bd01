// Package suites tells which conformance suites a run of the tests includes: those of all paths to a store take
// minutes. So do those tests of real workers, in real time, whose parts are tested by themselves.
package suites

import (
	"os"
	"testing"

	"github.com/slotlease/slotlease/internal/race"
)

// SecondPath skips a test that runs the suite on a store once more, by another path: a pooler, a router, statements
// for older servers. CI sets SLOTLEASE_SUITES=all, and runs them. The race detector sees the same code by the first path.
func SecondPath(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("the race detector sees the same code by the first path to this store")
	}
	if os.Getenv("SLOTLEASE_SUITES") != "all" {
		t.Skip("runs the suite by a second path to this store: set SLOTLEASE_SUITES=all")
	}
}

// SharedKit skips the suite under the race detector on a store that runs on the same part of storekit as another one, on
// which the race detector sees it. make soak sets SLOTLEASE_SUITES=race, and runs it.
func SharedKit(t *testing.T, with string) {
	t.Helper()
	if race.Enabled && os.Getenv("SLOTLEASE_SUITES") != "race" {
		t.Skip("the race detector sees the suite on " + with + ", which shares the kit's code with this store: set SLOTLEASE_SUITES=race")
	}
}

// SameGoroutines skips a long test under the race detector, if shorter tests run the same goroutines under it. make soak runs
// it.
func SameGoroutines(t *testing.T) {
	t.Helper()
	if race.Enabled && os.Getenv("SLOTLEASE_SUITES") != "race" {
		t.Skip("the race detector sees the same goroutines in shorter tests: set SLOTLEASE_SUITES=race")
	}
}

// RealTime skips a test that runs for most of a minute of real time, although other tests see each part of what it sees as a
// whole. CI runs it, as SecondPath says.
func RealTime(t *testing.T) {
	t.Helper()
	if os.Getenv("SLOTLEASE_SUITES") != "all" {
		t.Skip("runs for most of a minute of real time: set SLOTLEASE_SUITES=all")
	}
}
