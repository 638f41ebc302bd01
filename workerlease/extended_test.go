package workerlease_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// extending starts a worker whose lease is extended every 14.5 s, and whose
// LeaseExtended is f.
func extending(t *testing.T, f func(l workerlease.Lease)) *worker {
	t.Helper()
	return start(t, setup{Options: parted("w", 0, 20*time.Second), extended: f})
}

func TestASlowLeaseExtendedGetsOnlyTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expiries []time.Duration
		running := 0
		extending(t, func(l workerlease.Lease) {
			if running++; running > 1 {
				t.Error("two calls at a time")
			}
			expiries = append(expiries, since(l.Expiry))
			time.Sleep(40 * time.Second)
			running--
		})
		at(7 * time.Minute)
		// Extended at about 10.5 s, 24 s, 39 s, 54 s …; reported at 10.5 s, 50.5 s …
		if len(expiries) != 3 {
			t.Fatalf("observed %v in 2 min, want three calls of 40 s", expiries)
		}
		for i, e := range expiries {
			if want := 5*time.Minute + 10*time.Second + time.Duration(i)*40*time.Second; e < want || e > want+35*time.Second {
				t.Errorf("call %d got %v, want the newest window", i, e)
			}
		}
	})
}

func TestTheNextLeaseWaitsForLeaseExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := true
		w := extending(t, func(workerlease.Lease) {
			if block {
				block = false
				time.Sleep(7 * time.Minute)
			}
		})
		at(14 * time.Minute)
		h := w.history()
		if len(h) < 2 {
			t.Fatalf("%d leases, want a second one when LeaseExtended has returned", len(h))
		}
		if u := h[0]; u.expiredAt > 10*time.Minute {
			t.Errorf("LeaseExpired was called at %v, want it at the end of the slot", u.expiredAt)
		}
		if u := h[1]; u.allocated < 12*time.Minute || u.allocated > 13*time.Minute {
			t.Errorf("allocated again at %v, want soon after LeaseExtended returned at about 12m9s", u.allocated)
		}
		if n := len(observed[workerlease.Overrun](w)); n != 1 {
			t.Errorf("observed %d overruns, want one", n)
		}
	})
}

func TestALeaseExtendedThatPanicsOrEndsItsGoroutineEndsNothing(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		bubble(t, name, func(t *testing.T) {
			calls := 0
			w := extending(t, func(workerlease.Lease) {
				calls++
				end()
			})
			at(11 * time.Minute)
			h := w.history()
			if len(h) != 2 || h[0].why != workerlease.WindowEnded || calls < 20 {
				t.Errorf("%d leases, the first ended by %q, %d calls; want it to go on", len(h), h[0].why, calls)
			}
			if got := w.reported(workerlease.ErrPanicked); got != (name == "panic") {
				t.Errorf("a panic was reported: %v", got)
			}
		})
	}
}
