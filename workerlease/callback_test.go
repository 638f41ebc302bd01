package workerlease_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func TestLeaseExpiredComesAfterTheContextEndedAndOnTimeEvenIfLeaseAllocatedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{work: func(ctx context.Context, _ workerlease.Lease) {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // less than the margin
		}})
		at(11 * time.Minute)
		u := w.turn(t, 0)
		endsAt(t, u.expiredAt, 10*time.Minute)
		if u.aliveAtExpiry {
			t.Error("the context lives when LeaseExpired is called")
		}
		if u.expiries != 1 || u.why != workerlease.WindowEnded {
			t.Errorf("LeaseExpired was called %d times, with %q, want once, with %q", u.expiries, u.why, workerlease.WindowEnded)
		}
		if u.returned != u.expiredAt+100*time.Millisecond {
			t.Errorf("LeaseAllocated returned at %v, LeaseExpired was called at %v; want it 100 ms earlier", u.returned, u.expiredAt)
		}
		equal(t, "slots", w.starts(), minutes(5, 10)...)
		if n := len(observed[event.Overrun](w)); n != 0 {
			t.Errorf("%d overruns reported of code that kept within the margin", n)
		}
		must(t, w.StopLeasing(t.Context()))
		if u = w.turn(t, 1); u.expiries != 1 || u.why != workerlease.Stopped {
			t.Errorf("LeaseExpired was called %d times, with %q, want once, with %q", u.expiries, u.why, workerlease.Stopped)
		}
		if u = w.turn(t, 0); u.expiries != 1 {
			t.Errorf("LeaseExpired was called %d times for the first lease in the end, want once", u.expiries)
		}
	})
}

func TestCodeThatOverrunsKeepsTheWorkerFromClaiming(t *testing.T) {
	for name, inExpired := range map[string]bool{"LeaseAllocated": false, "LeaseExpired": true} {
		bubble(t, name, func(t *testing.T) {
			slow := func() {
				if time.Since(t0) < 10*time.Minute {
					time.Sleep(17*time.Minute - time.Since(t0))
				}
			}
			s := setup{work: func(ctx context.Context, _ workerlease.Lease) {
				<-ctx.Done()
				if !inExpired {
					slow()
				}
			}}
			if inExpired {
				s.expired = func(workerlease.Lease, workerlease.Reason) { slow() }
			}
			w := start(t, s)
			at(10*time.Minute - time.Millisecond*100)
			if st := w.Status(); !st.Running || st.Overrunning || !st.Healthy() {
				t.Errorf("within the margin: %v, overrunning %v", st, st.Overrunning)
			}
			at(12 * time.Minute)
			st := w.Status()
			if !st.Overrunning || st.Healthy() || st.Holding || !strings.Contains(st.String(), "overrunning") {
				t.Errorf("while overrunning: %v, healthy %v", st, st.Healthy())
			}
			if e := observed[event.Overrun](w); len(e) != 1 || since(e[0].Slot.Start) != 5*time.Minute {
				t.Errorf("Overrun events = %+v, want one", e)
			}
			at(26 * time.Minute)
			// What is left of the slot in which it returned is nobody's.
			equal(t, "slots", w.starts(), minutes(5, 15, 20, 25)...)
			if u := w.turn(t, 1); u.allocated < 17*time.Minute || u.allocated > 17*time.Minute+5*time.Second {
				t.Errorf("allocated again at %v, want soon after the code returned at 17m", u.allocated)
			}
			if st = w.Status(); st.Overrunning || !st.Healthy() {
				t.Errorf("afterwards: %v", st)
			}
			for _, m := range observed[event.Missed](w) {
				if m.Why != workerlease.Overrunning {
					t.Errorf("missed %v because of %q, want %q", m.Slot, m.Why, workerlease.Overrunning)
				}
			}
			if st.Missed != 1 {
				t.Errorf("Missed = %d, want 1: it was won before the overrun began", st.Missed)
			}
		})
	}
}

func TestAPanicInLeaseAllocatedEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{work: func(ctx context.Context, l workerlease.Lease) {
			if time.Since(t0) < 10*time.Minute {
				time.Sleep(time.Minute)
				panic("boom")
			}
			<-ctx.Done()
		}})
		at(8 * time.Minute)
		u := w.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrPanicked) || u.why != workerlease.Panicked || u.expiries != 1 || u.expiredAt != u.allocated+time.Minute {
			t.Errorf("turn = %+v, want the end at the panic", u)
		}
		if u.lease.Valid() || w.Status().Holding {
			t.Error("the lease is valid after the panic")
		}
		checkPanic(t, w, "LeaseAllocated", "boom")
		at(16 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 10, 15)...)
		if n := len(observed[event.Released](w)); n != 0 {
			t.Errorf("%d releases, want none: another worker might panic just so", n)
		}
	})
}

// Found by replaying the simulation: the reason was a matter of chance when an
// observer was slow at the end of the lease.
func TestCodeThatPanicsWhenItsLeaseHasEndedIsNotWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{
			work: func(ctx context.Context, _ workerlease.Lease) {
				<-ctx.Done()
				panic("late")
			},
			observe: func(e event.Event) {
				if _, ok := e.(event.Allocated); ok {
					time.Sleep(5*time.Minute + time.Second)
				}
			},
		})
		at(3 * time.Hour)
		ends := slices.DeleteFunc(w.history(), func(u turn) bool { return u.expiries == 0 })
		for _, u := range ends {
			if u.why != workerlease.WindowEnded || !errors.Is(u.cause, workerlease.ErrLeaseExpired) {
				t.Errorf("slot %v ended because of %q (%v), want %q", since(u.lease.Slot.Start), u.why, u.cause, workerlease.WindowEnded)
			}
		}
		if len(ends) < 10 {
			t.Errorf("%d leases in 3 h, want at least 10", len(ends))
		}
	})
}

// checkPanic checks that a panic was reported to Error, the observer and Status.
func checkPanic(t *testing.T, w *worker, callback, value string) {
	t.Helper()
	if !w.reported(workerlease.ErrPanicked) {
		t.Errorf("Error got %v, want a panic", w.errs)
	}
	e := observed[event.Panic](w)
	if len(e) == 0 {
		t.Fatal("no Panic event")
	}
	for _, want := range []string{callback, value, "callback_test.go"} {
		if text := e[0].Err.Error(); !strings.Contains(text, want) {
			t.Errorf("the error has no %q: %s", want, text)
		}
	}
	if w.Status().LastError == nil {
		t.Error("Status().LastError is nil")
	}
}

func TestCallbacksThatPanicOrEndTheirGoroutineHaveReturned(t *testing.T) {
	for name, s := range map[string]setup{
		"LeaseExpired panics": {expired: func(workerlease.Lease, workerlease.Reason) { panic("bang") }},
		"both end their goroutines": {
			work:    func(context.Context, workerlease.Lease) { runtime.Goexit() },
			expired: func(workerlease.Lease, workerlease.Reason) { runtime.Goexit() },
		},
		"a panic, with no LeaseExpired and no Error": {plain: true, work: func(ctx context.Context, _ workerlease.Lease) {
			<-ctx.Done()
			panic("nobody gets to know")
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			w := start(t, s)
			at(16 * time.Minute)
			equal(t, "slots", w.starts(), minutes(5, 10, 15)...)
			if name == "LeaseExpired panics" {
				checkPanic(t, w, "LeaseExpired", "bang")
			}
			if !s.plain {
				endsAt(t, w.turn(t, 0).expiredAt, 10*time.Minute)
			}
			w.stop(t)
		})
	}
}

// LeaseAllocated returns at once. The lease is held all the same, up to the last safe moment.
func TestRemainingCountsDownToTheLastSafeMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l workerlease.Lease
		if l.Valid() || l.Remaining() != 0 {
			t.Errorf("zero lease: valid %v, remaining %v; want false, 0", l.Valid(), l.Remaining())
		}
		w := start(t, setup{work: nothing})
		at(6 * time.Minute)
		u := w.turn(t, 0)
		l = u.lease
		if r := l.Remaining(); !l.Valid() || r < 3*time.Minute+59*time.Second || r > 4*time.Minute {
			t.Errorf("a minute into the slot: valid %v, remaining %v, want almost 4 min", l.Valid(), r)
		}
		at(9*time.Minute + 55*time.Second)
		endsAt(t, time.Since(t0)+l.Remaining(), 10*time.Minute)
		if s := w.Status(); !s.Holding || s.Running || w.turn(t, 0).expiries != 0 {
			t.Errorf("long after LeaseAllocated has returned: %v", s)
		}
		at(finish(10*time.Minute) - truncated)
		if u.ctx.Err() != nil || !l.Valid() || l.Remaining() <= 0 {
			t.Errorf("right before the last safe moment: context %v, remaining %v", u.ctx.Err(), l.Remaining())
		}
		for _, over := range []time.Duration{finish(10*time.Minute) + time.Millisecond + 10*time.Microsecond, 10*time.Minute - margin/2} {
			at(over)
			if u.ctx.Err() == nil || l.Valid() || l.Remaining() != 0 {
				t.Errorf("at %v, after it: context %v, valid %v, remaining %v", over, u.ctx.Err(), l.Valid(), l.Remaining())
			}
		}
		at(11 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 10)...)
		if u = w.turn(t, 0); u.expiries != 1 || !errors.Is(u.cause, workerlease.ErrLeaseExpired) {
			t.Errorf("%d expiries, cause %v; want one, %v", u.expiries, u.cause, workerlease.ErrLeaseExpired)
		}
	})
}

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
		if n := len(observed[event.Overrun](w)); n != 1 {
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
