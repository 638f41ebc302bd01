package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func TestAStoreThatIsDownAtTheStartIsRetriedUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Break(faultstore.Down())
		w := start(t, setup{ledger: ledger})
		synctest.Wait()
		if s := w.Status(); s.Failures != 1 || s.Healthy() || s.String() != "job: "+s.InstanceID+": waiting for the store: 1 failures: "+s.LastError.Error() || !errors.Is(s.LastError, faultstore.ErrDown) || !s.StoreTime.IsZero() {
			t.Errorf("after one failure: %d failures, healthy %v, last %v, store time %v", s.Failures, s.Healthy(), s.LastError, s.StoreTime)
		}
		at(7 * time.Minute)
		s := w.Status()
		if s.Failures < 3 || s.Healthy() || !strings.Contains(s.String(), "connection refused") {
			t.Errorf("after 7 min: %d failures, healthy %v, %q", s.Failures, s.Healthy(), s)
		}
		e := observed[event.StoreFailed](w)
		if len(e) != s.Failures || e[0].Operation != "now" || !errors.Is(e[0].Err, faultstore.ErrDown) {
			t.Errorf("%d StoreFailed events for %d failures, the first %+v", len(e), s.Failures, e[0])
		}
		ledger.Mend()
		at(16 * time.Minute)
		equal(t, "slots", w.starts(), minutes(10, 15)...)
		if s := w.Status(); s.Failures != 0 || !s.Healthy() || s.LastError == nil {
			t.Errorf("after the recovery: %d failures, healthy %v, last error %v", s.Failures, s.Healthy(), s.LastError)
		}
	})
}

func TestNoSingleFaultEndsLeasingOrCostsASlot(t *testing.T) {
	faults := map[string]faultstore.Fault{
		"failure":      faultstore.Failure(),
		"lost reply":   faultstore.LostReply(),
		"own conflict": faultstore.OwnConflict(),
		"lands late":   faultstore.LandsLate(2 * time.Second),
		"throttled":    faultstore.Throttled(2 * time.Second),
		"lost hole":    faultstore.BlackHole(faultstore.Dropped),
		"done hole":    faultstore.BlackHole(faultstore.Applied),
		"slow":         {Before: time.Second, After: time.Second},
		"stale":        faultstore.StaleRead(1),
		"denied":       {Effect: faultstore.Dropped, Err: store.ErrDenied},
		"not stored":   denied,
		"refused":      {Effect: faultstore.Dropped, Err: store.ErrRefused},
		"missing":      {Effect: faultstore.Dropped, Err: store.ErrMissing},
		"cancelled":    {Effect: faultstore.Dropped, Err: context.Canceled},
	}
	for _, op := range []faultstore.Op{faultstore.OpNow, faultstore.OpTail, faultstore.OpAppend} {
		for name, fault := range faults {
			if name == "stale" && op != faultstore.OpTail || name == "lands late" && op != faultstore.OpAppend {
				continue
			}
			bubble(t, string(op)+"/"+name, func(t *testing.T) {
				ledger := faulty(t, once(op, 3, fault))
				w := start(t, setup{ledger: ledger})
				at(26 * time.Minute)
				equal(t, "slots", w.starts(), minutes(5, 10, 15, 20, 25)...)
				if len(ledger.Struck()) == 0 {
					t.Error("the fault never struck")
				}
				if tokens := w.history(); !slices.IsSortedFunc(tokens, func(a, b turn) int { return int(a.lease.Token - b.lease.Token) }) {
					t.Error("tokens don't grow")
				}
			})
		}
	}
}

func TestAnOutageOverABoundaryLeavesTheLeaseAloneAndCostsOnlyItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		a := start(t, setup{ledger: ledger, Options: named("a", 0)})
		b := start(t, setup{ledger: ledger, Options: named("b", 1)})
		at(9*time.Minute + 45*time.Second)
		ledger.Break(faultstore.Down())
		at(11 * time.Minute)
		first := a.turn(t, 0)
		// Without a new sample the uncertainty goes on growing.
		if end := first.expiredAt; end < finish(10*time.Minute)-300*time.Millisecond || end > finish(10*time.Minute) || first.why != workerlease.WindowEnded {
			t.Errorf("the lease ended at %v with %q, want about %v", end, first.why, finish(10*time.Minute))
		}
		if a.Status().Healthy() || b.Status().Healthy() {
			t.Error("the workers look healthy during the outage")
		}
		ledger.Mend()
		at(16 * time.Minute)
		all := turnsOf(a, b)
		if len(all) != 3 {
			t.Fatalf("leases: a %v, b %v, want 5m, 10m and 15m once each", a.starts(), b.starts())
		}
		u := all[1]
		if since(u.lease.Slot.Start) != 10*time.Minute || u.allocated < 11*time.Minute || u.allocated > 11*time.Minute+20*time.Second {
			t.Errorf("allocated slot %v at %v, want that of 10m within 20 s of the recovery", u.lease.Slot, u.allocated)
		}
		if from := since(u.lease.Start); from < 11*time.Minute || u.allocated < from {
			t.Errorf("the window starts at %v, want after the recovery and before %v", from, u.allocated)
		}
	})
}

func TestASlotThatPassesInAnOutageIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		w := start(t, setup{ledger: ledger})
		at(6 * time.Minute)
		ledger.Break(faultstore.Down())
		at(22 * time.Minute)
		ledger.Mend()
		at(26 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 20, 25)...)
		if s := w.Status(); s.Missed != 2 || s.Allocated != 3 {
			t.Errorf("Missed %d, Allocated %d; want 2 and 3", s.Missed, s.Allocated)
		}
		count := 0
		for _, m := range observed[event.Missed](w) {
			if count += m.Count; m.Why != workerlease.Unreachable {
				t.Errorf("missed %v because of %q, want %q", m.Slot, m.Why, workerlease.Unreachable)
			}
		}
		if count != 2 {
			t.Errorf("%d slots missed by events, want 2", count)
		}
	})
}

func TestAnAppendWhoseReplyGoesAstrayIsFoundAndHasOneHolder(t *testing.T) {
	tests := map[string]struct {
		fault    faultstore.Fault
		kind     faultstore.FaultKind
		conflict bool
	}{
		"lost reply":   {faultstore.LostReply(), faultstore.KindLostReply, false},
		"own conflict": {faultstore.OwnConflict(), faultstore.KindOwnConflict, true},
		"time-out":     {faultstore.BlackHole(faultstore.Applied), faultstore.KindBlackHole, false},
		"lands late":   {faultstore.LandsLate(time.Second), faultstore.KindLate, false},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			ledger := faultstore.New(inner, faultstore.Options{Plan: once(faultstore.OpAppend, 2, test.fault)})
			defer func() { _ = ledger.Close(context.Background()) }()
			a := start(t, setup{ledger: ledger, Options: named("a", 0)})
			b := start(t, setup{ledger: inner.Handle(), Options: named("b", 1)})
			at(16 * time.Minute)
			equal(t, "slots of a", a.starts(), minutes(5, 10, 15)...)
			equal(t, "slots of b", b.starts())
			equal(t, "holders", holders(t, inner), "a", "a", "a")
			if ledger.Struck()[test.kind] == 0 {
				t.Errorf("the fault never struck: %v", ledger.Struck())
			}
			if n := len(observed[event.Conflict](a)); (n > 0) != test.conflict {
				t.Errorf("%d Conflict events, want any: %v", n, test.conflict)
			}
			if e := observed[event.Unknown](a); (len(e) > 0) == test.conflict {
				t.Errorf("%d Unknown events, want any: %v", len(e), !test.conflict)
			} else if len(e) > 0 && !a.reported(e[0].Err) {
				t.Error("the unknown outcome was not reported to Error")
			}
			a.stop(t)
			b.stop(t)
		})
	}
}

func TestAnAppendThatHangsIsGivenUpAfterAThirdOfTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faultstore.NewCounter(faulty(t, once(faultstore.OpAppend, 2, faultstore.BlackHole(faultstore.Dropped))))
		w := start(t, setup{ledger: ledger})
		at(11 * time.Minute)
		for _, e := range ledger.Log() {
			if e.Op == faultstore.OpAppend && e.Err != nil {
				near(t, "time-out", e.Ended.Sub(e.Began), lead/3)
			}
		}
		equal(t, "slots", w.starts(), minutes(5, 10)...)
	})
}

func TestAStoreThatThrottlesGetsTheTimeItAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 4 * time.Second
		for _, op := range []faultstore.Op{faultstore.OpTail, faultstore.OpAppend, faultstore.OpNow} {
			inner := faulty(t, once(op, 2, faultstore.Throttled(wait)))
			ledger := faultstore.NewCounter(inner)
			begun := time.Since(t0)
			w := start(t, setup{ledger: ledger})
			at(begun + 11*time.Minute)
			log := ledger.Log()
			i := slices.IndexFunc(log, func(e faultstore.Entry) bool { return errors.Is(e.Err, store.ErrThrottled) })
			if i < 0 || i+1 == len(log) {
				t.Fatalf("%s: the fault never struck: %v", op, log)
			}
			if got := log[i+1].Began.Sub(log[i].Ended); got < wait || got > wait+100*time.Millisecond {
				t.Errorf("%s: the next operation, %s, came %v later, want %v", op, log[i+1].Op, got, wait)
			}
			e := observed[event.Throttled](w)
			if len(e) != 1 || e[0].RetryAfter != wait || e[0].Operation != string(op) || !w.reported(store.ErrThrottled) {
				t.Errorf("%s: Throttled events = %+v, want one of %v, and an error reported", op, e, wait)
			}
			if n := len(observed[event.StoreFailed](w)) + len(observed[event.Unknown](w)); n != 0 {
				t.Errorf("%s: %d other events for the same error", op, n)
			}
			if n := len(w.starts()); n != 2 {
				t.Errorf("%s: %d slots, want 2", op, n)
			}
			w.stop(t)
		}
	})
}

// A store that asks for a long pause, once, costs the slot whose claim it throttled.
func TestALongRetryAfterCostsOneSlotAtMost(t *testing.T) {
	for _, op := range []faultstore.Op{faultstore.OpNow, faultstore.OpTail, faultstore.OpAppend} {
		for _, asks := range []time.Duration{50 * time.Minute, 24 * time.Hour} {
			bubble(t, fmt.Sprint(op, " ", asks), func(t *testing.T) {
				w := start(t, setup{ledger: faulty(t, once(op, 3, faultstore.Throttled(asks)))})
				at(61 * time.Minute)
				starts := w.starts()
				for _, slot := range minutes(30, 35, 40, 45, 50, 55, 60) {
					if !slices.Contains(starts, slot) {
						t.Errorf("slots %v, want that of %v", starts, slot)
					}
				}
				if len(starts) < 11 {
					t.Errorf("slots %v, want 11 of the 12", starts)
				}
			})
		}
	}
}

// While the store can't be reached, stopping takes up to the end of the slot, and no longer if it is throttled, or if there
// is work to be recorded as done.
func TestStopLeasingWithoutADeadlineEndsWithTheSlotWhateverTheStoreDoes(t *testing.T) {
	for name, fault := range map[string]faultstore.Fault{
		"down": faultstore.Down(), "1s": faultstore.Throttled(time.Second), "2m": faultstore.Throttled(2 * time.Minute),
		"1h": faultstore.Throttled(time.Hour), "down from its last append on": faultstore.Down(),
	} {
		for _, done := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, ", done ", done), func(t *testing.T) {
				link := faulty(t, nil)
				breaks := func() {
					if len(name) < 5 {
						link.Break(fault)
					}
				}
				dying := &hooked{Ledger: link, beforeAppend: func(r store.Record) {
					if r.Kind != store.KindGrant {
						link.Break(fault)
					}
				}}
				s := setup{ledger: dying, Options: named("a", 0)}
				if done {
					s.Options = perSlot("a", 0)
					s.task = func(context.Context, workerlease.Lease) error { breaks(); return nil }
				}
				w := start(t, s)
				at(6 * time.Minute)
				breaks()
				must(t, w.StopLeasing(context.Background()))
				if ended := time.Since(t0); ended > 10*time.Minute+time.Second || name[0] == 'd' && ended < 9*time.Minute {
					t.Errorf("stopped at %v, want it by the end of the slot, 10m", ended)
				}
			})
		}
	}
}

// A worker that has never reached the store doesn't know which slot it is, but how long it
// is.
func TestAWorkerThatCouldNotReachTheStoreYetTriesWithinASlot(t *testing.T) {
	for name, err := range map[string]error{"down": errCut, "throttling": &store.ThrottledError{RetryAfter: time.Hour}} {
		bubble(t, name, func(t *testing.T) {
			away := during(0, time.Minute, faultstore.Fault{Effect: faultstore.Dropped, Err: err})
			w := start(t, setup{ledger: faulty(t, away), Options: workerlease.Options{LeaseInterval: time.Second}})
			at(65 * time.Second)
			if starts := w.starts(); len(starts) == 0 || starts[0] > 62*time.Second {
				t.Errorf("slots %v, want the first within two slots of 1m", starts)
			}
		})
	}
}
