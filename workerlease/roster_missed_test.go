package workerlease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A worker says of which slots it is that nobody had them, and no longer when it has one.
func TestTheRosterSaysWhichSlotsNobodyHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("a", 0)
		var fit atomic.Bool
		o.Eligible = func(context.Context) error {
			if fit.Load() {
				return nil
			}
			return errors.New("its disk is full")
		}
		w := start(t, setup{Options: o, ledger: ledger, roster: true})
		at(10*time.Minute + 30*time.Second)
		p := ofInstance(present(t, ledger), "a")
		if p.Missed != "nobody had it: "+string(workerlease.Ineligible) || since(p.MissedFrom) != 5*time.Minute || since(p.MissedUntil) != 10*time.Minute {
			t.Errorf("after a slot in which it wasn't eligible, it says %q of the slots from %v to %v, want of the one from 5m to 10m", p.Missed, since(p.MissedFrom), since(p.MissedUntil))
		}
		fit.Store(true)
		at(25*time.Minute + 30*time.Second)
		if p := ofInstance(present(t, ledger), "a"); p.Missed != "" || !p.MissedFrom.IsZero() || !p.MissedUntil.IsZero() {
			t.Errorf("while it holds, it says %q of the slots from %v to %v", p.Missed, since(p.MissedFrom), since(p.MissedUntil))
		}
		w.stop(t)
	})
}
