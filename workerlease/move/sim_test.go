package move_test

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/slotlease/slotlease/internal/suites"
)

// enough worlds show each thing that is counted.
const enough = 120

// seeds is how many worlds are simulated: enough, a few in short tests, or as many as SLOTLEASE_MOVE_SEEDS asks for.
func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SLOTLEASE_MOVE_SEEDS")
	switch {
	case text == "" && testing.Short():
		return enough / 6
	case text == "":
		return enough
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SLOTLEASE_MOVE_SEEDS: %v", err)
	}
	return n
}

// Two operators move a worker type between three stores, are interrupted, give other orders, and begin again; some workers
// are there too early, some are groups, some are too old to know orders, some appends are late, some reads are slow, the first ledger may
// be trimmed, and clocks are apart.
func TestNoTwoHoldWhateverOperatorsDo(t *testing.T) {
	var sum tally
	n := seeds(t)
	for seed := range n {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, "")
			w.run()
			if finding := w.overlap(); finding != "" {
				t.Errorf("seed %d: %s", seed, finding)
			}
			sum.add(w)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d worlds: %+v", n, sum)
	if n >= enough && (sum.Moved < int(n)/2 || sum.Again < int(n)/4 || sum.Refused == 0 || sum.Beaten == 0 || sum.Foreign == 0 || sum.Trimmed == 0 || sum.Named == 0) {
		t.Errorf("the worlds were too quiet: %+v", sum)
	}
}

func TestTheSimulationFindsTwoHoldersWhereARuleIsBroken(t *testing.T) {
	suites.SameGoroutines(t)
	for _, broken := range []string{noWait, noID, noGuard, noLanded} {
		t.Run(broken, func(t *testing.T) {
			for seed := range uint64(2000) {
				found := false
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, seed, broken)
					w.run()
					found = w.overlap() != ""
				})
				if found {
					t.Logf("found by seed %d", seed)
					return
				}
			}
			t.Error("no seed finds two holders")
		})
	}
}

// tally counts what happened in all worlds.
type tally struct{ Moved, Again, Refused, Beaten, GivenUp, Foreign, Trimmed, Named, Leases int }

func (a *tally) add(w *world) {
	b := w.tally
	a.Moved, a.Again, a.Refused, a.Beaten = a.Moved+b.Moved, a.Again+b.Again, a.Refused+b.Refused, a.Beaten+b.Beaten
	a.GivenUp, a.Foreign, a.Trimmed = a.GivenUp+b.GivenUp, a.Foreign+b.Foreign, a.Trimmed+b.Trimmed
	a.Named, a.Leases = a.Named+b.Named, a.Leases+len(w.turns)
}
