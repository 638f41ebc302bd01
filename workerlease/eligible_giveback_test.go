package workerlease_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// It was won, and can't be given back since the store is down.
func TestASlotThatAnIneligibleWorkerCannotGiveBackIsMissedBecauseOfThat(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var fails atomic.Bool
		h := &hooked{Ledger: memory.New(memory.Options{}), before: func() error {
			if fails.Load() {
				return errUnwell
			}
			return nil
		}}
		var sick health
		a := start(t, setup{ledger: h, Options: sick.options("a", 0)})
		at(57 * time.Second)
		sick.bad.Store(true)
		fails.Store(true)
		at(130 * time.Second)
		missed := observed[workerlease.Missed](a)
		if len(missed) != 1 || missed[0].Why != workerlease.Ineligible {
			t.Errorf("missed %+v, want one slot, because it isn't eligible", missed)
		}
		fails.Store(false)
	})
}
