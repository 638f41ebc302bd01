package workerlease_test

import (
	"context"
	"errors"
	"fmt"
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

// newest is the head of the ledger.
func newest(t *testing.T, l store.Ledger) store.Record {
	t.Helper()
	all := records(t, l)
	if len(all) == 0 {
		t.Fatal("the ledger is empty")
	}
	return all[len(all)-1]
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestStopLeasingWhileWaitingTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := faultstore.NewCounter(memory.New(memory.Options{}))
		w := start(t, setup{ledger: counter})
		at(time.Minute)
		before := len(counter.Log())
		w.stop(t)
		if n := len(counter.Log()); n != before {
			t.Errorf("%d operations while stopping, want none: %v", n-before, counter.Log()[before:])
		}
		s := w.Status()
		if !closed(w.Done()) || !s.Stopped || s.Healthy() {
			t.Errorf("after StopLeasing: Done closed %v, status %v", closed(w.Done()), s)
		}
		at(10 * time.Minute)
		if len(w.history()) != 0 {
			t.Error("a stopped worker was allocated")
		}
	})
}

func TestStopLeasingReleasesAfterTheCodeHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var returned, expired time.Duration
		w := start(t, setup{
			ledger: ledger,
			work: func(ctx context.Context, _ workerlease.Lease) {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				returned = time.Since(t0)
			},
			expired: func(workerlease.Lease, workerlease.Reason) {
				time.Sleep(7 * time.Second)
				expired = time.Since(t0)
			},
		})
		at(6 * time.Minute)
		must(t, w.StopLeasing(t.Context()))
		u := w.turn(t, 0)
		if u.ended != 6*time.Minute || u.cause != workerlease.ErrStopped || u.why != workerlease.Stopped || u.expiries != 1 {
			t.Errorf("turn = %+v, want stopped at once", u)
		}
		if returned != 6*time.Minute+3*time.Second || expired != 6*time.Minute+7*time.Second {
			t.Errorf("LeaseAllocated returned at %v, LeaseExpired at %v", returned, expired)
		}
		r := newest(t, ledger)
		if r.Kind != store.KindRelease || r.Token != u.lease.Token {
			t.Fatalf("head = %+v, want a release of token %d", r, u.lease.Token)
		}
		if got := since(r.WindowEnd); got < expired || got > expired+2*time.Millisecond || !r.WindowStart.Equal(r.WindowEnd) {
			t.Errorf("released at %v, want right after both callbacks returned at %v", got, expired)
		}
		if e := observed[event.Released](w); len(e) != 1 || e[0].Seq != r.Seq || !e[0].At.Equal(r.WindowEnd) {
			t.Errorf("Released events = %+v, want one of seq %d", e, r.Seq)
		}

		// What was freed is free at once for those who join.
		other := start(t, setup{ledger: ledger, joins: true})
		at(7 * time.Minute)
		if v := other.turn(t, 0); since(v.lease.Slot.Start) != 5*time.Minute || v.lease.Token <= u.lease.Token {
			t.Errorf("the next lease = %+v, want the rest of the slot with a higher token", v.lease)
		}
	})
}

func TestStopLeasingUnderADeadlineSaysWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		let := make(chan struct{})
		w := start(t, setup{ledger: ledger, work: func(context.Context, workerlease.Lease) { <-let }})
		at(6 * time.Minute)
		mine := errors.New("shutting down")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, mine)
		defer cancel()
		err := w.StopLeasing(ctx)
		if !errors.Is(err, mine) || !strings.Contains(err.Error(), "callbacks have not returned") || !strings.Contains(err.Error(), `"job"`) {
			t.Errorf("StopLeasing = %v, want the cause, the type, and what it waited for", err)
		}
		if got := time.Since(t0); got != 7*time.Minute {
			t.Errorf("it returned at %v, want at the deadline", got)
		}
		if closed(w.Done()) || w.Status().Stopped {
			t.Error("the worker stopped although its code runs")
		}
		close(let)
		<-w.Done()
		if r := newest(t, ledger); r.Kind != store.KindGrant {
			t.Errorf("head is a %s, want no operation after giving up", r.Kind)
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Errorf("StopLeasing of a stopped worker: %v", err)
		}
	})
}

// It is tried often, because an operation that giving up cut short could come back first,
// and another was begun then.
func TestStopLeasingUnderADeadlineGivesUpOnAStoreThatIsDown(t *testing.T) {
	const deadline = 6*time.Minute + time.Second
	for n := range 20 {
		for name, fault := range map[string]faultstore.Fault{"down": faultstore.Down(), "black hole": faultstore.BlackHole(faultstore.Dropped)} {
			bubble(t, fmt.Sprint(name, " ", n), func(t *testing.T) {
				faults := faulty(t, nil)
				counter := faultstore.NewCounter(faults)
				w := start(t, setup{ledger: counter})
				at(6 * time.Minute)
				faults.Break(fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := w.StopLeasing(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may not have been released") {
					t.Errorf("StopLeasing = %v, want a deadline exceeded and an unreleased lease", err)
				}
				<-w.Done()
				if got := time.Since(t0); got != deadline {
					t.Errorf("the worker ended at %v, want at the deadline", got)
				}
				for _, e := range counter.Log() {
					if d := since(e.Began); d >= deadline {
						t.Errorf("%v was begun at %v, after giving up", e.Op, d)
					}
				}
			})
		}
	}
}

func TestTheEndOfTheContextOfStartLeasingStops(t *testing.T) {
	bubble(t, "and releases", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		w := start(t, setup{ledger: ledger, ctx: ctx})
		at(6 * time.Minute)
		cancel()
		<-w.Done()
		synctest.Wait()
		if r := newest(t, ledger); r.Kind != store.KindRelease || time.Since(t0) != 6*time.Minute {
			t.Errorf("head is a %s at %v, want a release at once", r.Kind, time.Since(t0))
		}
		if u := w.turn(t, 0); u.cause != workerlease.ErrStopped || u.expiries != 1 {
			t.Errorf("cause %v, %d expiries; want %v, 1", u.cause, u.expiries, workerlease.ErrStopped)
		}
	})
	bubble(t, "with 10 s for the code", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		let := make(chan struct{})
		w := start(t, setup{ledger: ledger, ctx: ctx, work: func(context.Context, workerlease.Lease) { <-let }})
		at(6 * time.Minute)
		cancel()
		at(6*time.Minute + 10*time.Second - time.Nanosecond)
		if w.Status().LastError != nil {
			t.Errorf("gave up before 10 s: %v", w.Status().LastError)
		}
		at(6*time.Minute + 10*time.Second)
		if !w.reported(context.DeadlineExceeded) {
			t.Errorf("Error got %v, want that stopping took too long", w.errs)
		}
		close(let)
		<-w.Done()
		if r := newest(t, ledger); r.Kind != store.KindGrant {
			t.Errorf("head is a %s, want no operation after giving up", r.Kind)
		}
	})
	bubble(t, "even if it had ended before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := start(t, setup{ctx: ctx})
		<-w.Done()
	})
}

// When ctx ends and the release fails, the error is handed over before the worker may end:
// otherwise 1 of 30 was lost.
func TestAStopThatFailedIsAlwaysReported(t *testing.T) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			ledger := faulty(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			w := start(t, setup{ledger: ledger, ctx: ctx})
			at(6 * time.Minute)
			ledger.Break(faultstore.Down())
			cancel()
			<-w.Done()
			if n, reported := len(observed[event.StopFailed](w)), w.count(workerlease.ErrNotReleased); n != 1 || reported != 1 {
				t.Errorf("%d events and %d errors of a stop that failed, want one each", n, reported)
			}
		})
	}
}

func TestAStopBeforeAnyLeaseSpeaksOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Break(faultstore.BlackHole(faultstore.Dropped))
		w := start(t, setup{ledger: ledger})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := w.StopLeasing(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, workerlease.ErrNotReleased) || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("StopLeasing() = %v, want the deadline, and no lease", err)
		}
	})
}

func TestStopLeasingKeepsItsDeadlineAlsoWhileAnObserverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		w := start(t, setup{observe: func(event.Event) { <-blocked }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.StopLeasing(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(t0) > time.Second {
			t.Errorf("StopLeasing = %v after %v, want its deadline kept", err, time.Since(t0))
		}
		close(blocked)
	})
}
