// Package suites decides which tests a run includes. A plain go test is the quick run, which everybody makes before a
// commit: what is pure, the engine, and the stores in memory, on SQLite and on the MongoDB peer. All that starts other
// servers or many processes, what simulates for long, and what a busy machine can fail, is skipped there by name.
// SLOTLEASE_SUITES=all, which make prove sets, runs it, too; so does REQUIRE_STORES for the servers that it names.
//
// A test asks by one line at its beginning:
//
//	suites.Prove(t, "kills 40 processes")
//
// or by suites.RealTime(t), if it is one of realtime.tsv.
//
// A test whose size can be chosen takes a smaller one where [Quick] reports true. Tests on servers ask nothing: the packages
// that start them do.
package suites

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
)

// The values of the environment variable.
const (
	variable = "SLOTLEASE_SUITES"
	all      = "all"
	allRaces = "race" // all, and what the race detector sees elsewhere
)

// quickServers are the names of the servers that the quick run starts: that of the main store, and a script.
var quickServers = []string{"mongo", "fake"}

// Quick reports whether this is the quick run.
func Quick() bool { return os.Getenv(variable) != all && os.Getenv(variable) != allRaces }

// Limit is how long something may take by real time: judged where it is, and in the quick run, which a busy machine only
// delays, so long that only what hangs exceeds it.
func Limit(judged, hangs time.Duration) time.Duration {
	if Quick() {
		return hangs
	}
	return judged
}

// Prove skips a test in the quick run, and says why, and which command runs it.
func Prove(t testing.TB, why string) {
	t.Helper()
	if Quick() {
		t.Skipf("not in the quick run: %s: %s", why, command(t.Name()))
	}
}

// command is the command that runs a test with all others.
func command(test string) string {
	folder := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		if below, ok := strings.CutPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path+"/"); ok {
			folder = "./" + below
		}
	}
	test, _, _ = strings.Cut(test, "/")
	return fmt.Sprintf("%s=%s go test -run '^%s$' %s", variable, all, test, folder)
}

// Server skips a test in the quick run if it needs a server other than that of the main store, and REQUIRE_STORES doesn't
// name it. A benchmark runs: nobody asks for one by chance.
func Server(t testing.TB, name string) {
	t.Helper()
	_, measures := t.(*testing.B)
	if !measures && !slices.Contains(quickServers, name) && !Required(name) {
		Prove(t, "it starts a server of "+name)
	}
}

// Required reports whether the environment variable REQUIRE_STORES, a list separated by commas, names a server: tests fail
// without it then.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), name)
}

// SecondPath skips a test that runs the suite on a store once more, by another path: a pooler, a router, statements
// for older servers. The race detector sees the same code by the first path.
func SecondPath(t testing.TB) {
	t.Helper()
	if race.Enabled {
		t.Skip("the race detector sees the same code by the first path to this store")
	}
	Prove(t, "it runs the suite by a second path to this store")
}

// SharedKit skips the suite under the race detector on a store that runs on the same part of storekit as another one, on
// which the race detector sees it. make soak sets SLOTLEASE_SUITES=race, and runs it.
func SharedKit(t testing.TB, with string) {
	t.Helper()
	seenElsewhere(t, "the suite on "+with+", which shares the kit's code with this store")
}

// SameGoroutines skips a long test under the race detector, if shorter tests run the same goroutines under it. make soak runs
// it.
func SameGoroutines(t testing.TB) {
	t.Helper()
	seenElsewhere(t, "the same goroutines in shorter tests")
}

func seenElsewhere(t testing.TB, what string) {
	t.Helper()
	if race.Enabled && os.Getenv(variable) != allRaces {
		t.Skipf("the race detector sees %s: set %s=%s", what, variable, allRaces)
	}
}
