package workerlease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func TestEverybodyKnowsWhoHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		high := start(t, setup{ledger: ledger.Handle(), Options: parted("high", 0, 20*time.Second)})
		low := start(t, setup{ledger: ledger.Handle(), Options: parted("low", 1, 20*time.Second)})
		check := func(when time.Duration, want string) {
			t.Helper()
			at(when)
			for name, w := range map[string]*worker{"high": high, "low": low} {
				if w.Status().Stopped {
					continue
				}
				h, ok := w.Holder()
				if h.InstanceID != want || ok != (want != "") {
					t.Errorf("at %v, %s.Holder() = %+v, %v, want %q", when, name, h, ok, want)
				}
				if w.IsHolder() != (name == want) {
					t.Errorf("at %v, %s.IsHolder() = %v", when, name, w.IsHolder())
				}
			}
		}
		check(time.Minute, "")
		check(4*time.Minute+55*time.Second, "") // It is claimed, but has not begun.
		check(5*time.Minute+time.Second, "high")
		check(9*time.Minute, "high")
		h, _ := low.Holder()
		if h.Priority != 0 || h.Token != high.turn(t, 0).lease.Token || since(h.From) != 5*time.Minute || since(h.Until) <= 9*time.Minute {
			t.Errorf("Holder() = %+v, want the lease of 5m, extended beyond 9m", h)
		}
		if ago := 9*time.Minute - since(h.Claimed); ago < 0 || ago > 20*time.Second {
			t.Errorf("the newest claim was made at %v, want less than 20 s ago", since(h.Claimed))
		}
		high.stop(t)
		check(9*time.Minute+25*time.Second, "low")
		var seen []string
		for _, e := range told[workerlease.HolderChanged](low) {
			seen = append(seen, e.Holder.InstanceID)
		}
		// Of the release it is told as well.
		equal(t, "holders that were told", seen, "high", "high", "low")
	})
}
