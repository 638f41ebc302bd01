package workerlease_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// bootTime is the bubble's clock with a boot time.
type bootTime struct{ clock.Clock }

func (b bootTime) Boottime() time.Duration { return b.Since(t0) }

func TestALeaseEndsAsAWholeWhenAnotherServersClockSaysThatItHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &hooked{Ledger: memory.New(memory.Options{})}
		w := start(t, setup{ledger: l, clock: bootTime{clock.New()}})
		at(5*time.Minute + 500*time.Millisecond)
		l.stamp = func(s *store.Stamp, _ time.Time) {
			s.Time, s.Server = s.Time.Add(-2*time.Second), "other"
		}
		start(t, setup{client: w.Client(), joins: true, Options: workerlease.Options{WorkerType: "other", Lead: 10 * time.Millisecond}})
		at(5*time.Minute + 600*time.Millisecond)
		u := w.turn(t, 0)
		if u.expiries != 1 || u.why != workerlease.ClockJumped || !errors.Is(u.cause, workerlease.ErrClockJumped) || w.Status().Holding {
			t.Errorf("turn = %+v, status %v, want context and lease to have ended together", u, w.Status())
		}
	})
}

func TestTheContextEndsInTimeAlsoWhileAnObserverBlocksAndTheTimeGetsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &hooked{Ledger: memory.New(memory.Options{})}
		blocked := make(chan struct{})
		w := start(t, setup{ledger: l, Options: workerlease.Options{LeaseInterval: 10 * time.Second}, observe: func(e event.Event) {
			if _, ok := e.(event.Allocated); ok && e.Of().WorkerType == "job" {
				<-blocked
			}
		}})
		at(18 * time.Second)
		l.stamp = func(s *store.Stamp, _ time.Time) {
			s.Time, s.Server = s.Time.Add(3*time.Second), "other"
		}
		start(t, setup{client: w.Client(), joins: true, Options: workerlease.Options{WorkerType: "other"}})
		at(18*time.Second + 20*time.Millisecond)
		if u := w.turn(t, 0); u.lease.Valid() || u.ctx.Err() == nil {
			t.Errorf("valid %v, context's error %v, want both to say that it is over", u.lease.Valid(), u.ctx.Err())
		}
		close(blocked)
	})
}

func TestAWorkerThatStartsRightAfterAJumpMindsTheOldTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &hooked{Ledger: memory.New(memory.Options{})}
		c := start(t, setup{ledger: l}).Client()
		at(16 * time.Minute)
		l.stamp = func(s *store.Stamp, _ time.Time) {
			s.Time, s.Server = s.Time.Add(time.Minute), "other"
		}
		start(t, setup{client: c, joins: true, Options: workerlease.Options{WorkerType: "b"}})
		at(16*time.Minute + time.Second)
		late := start(t, setup{client: c, Options: workerlease.Options{WorkerType: "c"}})
		synctest.Wait()
		if got := late.Status().Uncertainty; got < 20*time.Second {
			t.Errorf("uncertainty = %v, want the hull of both servers' times", got)
		}
	})
}

func TestALateExpiryGivesTheCodeAMomentBeforeItOverruns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The worker's goroutine is held up over the end of the window.
		var block atomic.Bool
		w := start(t, setup{observe: func(e event.Event) {
			if _, ok := e.(event.ClockSample); ok && block.Load() {
				time.Sleep(30 * time.Second)
			}
		}})
		at(9*time.Minute + 45*time.Second)
		block.Store(true)
		at(9*time.Minute + 55*time.Second)
		block.Store(false)
		at(11 * time.Minute)
		if u, overruns := w.turn(t, 0), observed[event.Overrun](w); u.expiries != 1 || len(overruns) != 0 {
			t.Errorf("turn = %+v, %d overruns, want none of code that returned at once", u, len(overruns))
		}
	})
}

// Found by the simulation: claims were sent that had been decided on long before.
func TestASlowObserverDoesNotDelayWhatWasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		other := planted(1, 0, 5*time.Minute)
		other.Schedule = "every 1m" // It is reported in the step in which the claim is made.
		inner.Put(other)
		ledger := faultstore.NewCounter(inner)
		start(t, setup{ledger: ledger, observe: func(e event.Event) {
			if _, ok := e.(event.ScheduleMismatch); ok {
				time.Sleep(3 * time.Second)
			}
		}})
		at(6 * time.Minute)
		log := ledger.Log()
		i := slices.IndexFunc(log, func(e faultstore.Entry) bool { return e.Op == faultstore.OpAppend })
		if i < 1 || log[i-1].Op != faultstore.OpTail || !log[i].Began.Equal(log[i-1].Ended) {
			t.Errorf("operations: %+v, want the claim to be sent when the head was read", log)
		}
	})
}
