package failovers

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// TIMES of make failovers must be a number of failovers.
func TestCount(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "24": 24, "0": 0, "-1": 0, "": 0, "2x": 0, "1.5": 0} {
		if n, err := count(text); n != want || (err != nil) != (want == 0) {
			t.Errorf("count(%q) = %d, %v, want %d", text, n, err, want)
		}
	}
}

// A failover that was skipped, or didn't run, has shown nothing.
func TestATallyIsCompleteOnceAllFailoversRan(t *testing.T) {
	var a tally
	for ran := range 4 {
		if err := a.complete(2); (err == nil) != (ran == 2) {
			t.Errorf("complete(2) after %d failovers = %v", ran, err)
		}
		a.add(verdict{}, time.Second)
	}
}

// Workers on a store in memory, which loses what it is told to lose, or nothing.
func TestAFailoverIsJudgedFromItsLedger(t *testing.T) {
	for name, c := range map[string]struct {
		loses bool
		fail  func(m *memory.Ledger)
		lost  bool
	}{
		"that keeps all":   {false, func(*memory.Ledger) {}, false},
		"that loses a few": {true, func(m *memory.Ledger) { m.Lose("slots", 2); m.Lose("leader", 1) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := memory.New(memory.Options{})
				v, _ := failover(t, World{
					Loses: c.loses,
					Open:  func() store.Ledger { return m.Handle() },
					Fail:  func(*rand.Rand) { c.fail(m) },
				}, rand.New(rand.NewPCG(1, 6)))
				if (v.lost > 0) != c.lost {
					t.Errorf("%d lost records are found, want some: %v", v.lost, c.lost)
				}
			})
		})
	}
}
