package workerlease_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// minutely is a job with slots of a minute.
func minutely(name string, priority int) workerlease.Options {
	o := named(name, priority)
	o.LeaseInterval, o.Job = time.Minute, &workerlease.Job{}
	return o
}

// working runs for as long as a slot's work takes, and counts those that run at once.
type working struct {
	job
	takes map[time.Duration]time.Duration // by the slot's start; 0: a second
	open  int
	twice bool
}

func newWorking(takes map[time.Duration]time.Duration) *working {
	w := &working{takes: takes}
	w.do = func(ctx context.Context, l workerlease.Lease, _ int) error {
		w.mu.Lock()
		w.open++
		w.twice = w.twice || w.open > 1
		w.mu.Unlock()
		defer func() { w.mu.Lock(); w.open--; w.mu.Unlock() }()
		return waits(ctx, cmp.Or(w.takes[since(l.Slot.Start)], time.Second))
	}
	return w
}

func TestWorkThatIsTooLongForItsSlotFinishesAndTheSlotsBetweenAreSkipped(t *testing.T) {
	for _, c := range []struct {
		takes         time.Duration
		skipped, next []int // minutes
	}{
		{50 * time.Second, nil, []int{2, 3, 4}},
		{58 * time.Second, nil, []int{2, 3, 4}},
		{66 * time.Second, nil, []int{2, 3, 4}},
		{78 * time.Second, []int{2}, []int{3, 4}}, // 1.3 slots
		{5*time.Minute + 5*time.Second, []int{2, 3, 4, 5}, []int{6, 7}},
		{5*time.Minute + 30*time.Second, []int{2, 3, 4, 5, 6}, []int{7}},
	} {
		bubble(t, c.takes.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: c.takes})
			a := runs(t, ledger.Handle(), minutely("a", 0), w.run)
			b := runs(t, ledger.Handle(), minutely("b", 1), w.run)
			at(9 * time.Minute)
			equal(t, "the long one", w.of(time.Minute), "a")
			var skipped []time.Duration
			for n, e := range observed[event.Skipped](a.worker) {
				skipped = append(skipped, since(e.Slot.Start))
				if since(e.Running.Start) != time.Minute || e.Row != n+1 || since(e.Since) != time.Minute {
					t.Errorf("observed %+v", e)
				}
			}
			equal(t, "skipped", skipped, minutes(c.skipped...)...)
			if n := len(observed[event.SlotDone](a.worker)); n == 0 || since(observed[event.SlotDone](a.worker)[0].Slot.Start) != time.Minute {
				t.Errorf("observed %+v, want that the slot of the long run is done", observed[event.SlotDone](a.worker))
			}
			for _, slot := range minutes(c.skipped...) {
				equal(t, fmt.Sprint("slot ", slot), w.of(slot))
			}
			for _, slot := range minutes(c.next...) {
				if n := len(w.of(slot)); n != 1 {
					t.Errorf("the slot of %v is run %d times, want once", slot, n)
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, call := range w.calls {
				if late := call.began - call.slot; late > 15*time.Second {
					t.Errorf("the slot of %v begins %v late", call.slot, late)
				}
			}
			if w.twice {
				t.Error("two ran at once")
			}
			for _, x := range []*running{a, b} {
				if n := len(observed[event.Missed](x.worker)) + len(observed[event.TaskFailed](x.worker)); n > 0 {
					t.Errorf("%d slots missed, or attempts failed, want none: %+v", n, observed[event.Missed](x.worker))
				}
			}
			claims := map[string]bool{}
			for _, r := range records(t, ledger) {
				if r.Kind == store.KindGrant && since(r.SlotStart) == time.Minute {
					claims[fmt.Sprint(r.Claim, r.Token, r.Attempt, since(r.SlotEnd))] = true
				}
			}
			if len(claims) != 1 {
				t.Errorf("the long one has the terms %v, want one", claims)
			}
		})
	}
}

// A run that finishes stands for the slots that were skipped for it. One that fails leaves them missed.
func TestSlotsThatWereSkippedForARunThatFailsAreCaughtUpAsTheJobAsks(t *testing.T) {
	for _, c := range []struct {
		how   workerlease.CatchUp
		fails bool
		run   []int
	}{
		{workerlease.CatchUpNone, true, []int{0, 1, 5}},
		{workerlease.CatchUpNewest, true, []int{0, 1, 4, 5}},
		{workerlease.CatchUpAll, true, []int{0, 1, 2, 3, 4, 5}},
		{workerlease.CatchUpAll, false, []int{0, 1, 5}},
	} {
		bubble(t, fmt.Sprint(c.how, c.fails), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: 200 * time.Second})
			works := w.do
			w.do = func(ctx context.Context, l workerlease.Lease, n int) error {
				err := works(ctx, l, n)
				if c.fails && since(l.Slot.Start) == time.Minute {
					return errWork
				}
				return err
			}
			o := minutely("a", 0)
			o.Job.CatchUp, o.Job.MaxAttempts = c.how, 1
			a := runsAtOnce(t, ledger.Handle(), o, w.run)
			at(5*time.Minute + 30*time.Second)
			equal(t, "run", w.ran(), minutes(c.run...)...)
			if s, m := observed[event.Skipped](a.worker), observed[event.Missed](a.worker); len(s) != 3 || len(m) != 0 {
				t.Errorf("said to be skipped: %+v, missed: %+v", s, m)
			}
		})
	}
}

func TestOverrunStopCutsWorkAtTheEndOfItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := newWorking(map[time.Duration]time.Duration{time.Minute: 80 * time.Second})
		o := minutely("a", 0)
		o.Job.Overrun, o.Job.MaxAttempts = workerlease.Stop, 1
		a := runs(t, ledger, o, w.run)
		at(170 * time.Second)
		failed := observed[event.TaskFailed](a.worker)
		if len(failed) != 1 || failed[0].Cause != store.SlotEnded || !failed[0].GivenUp {
			t.Errorf("observed %+v, want one attempt that was cut at the end of its slot", failed)
		}
		equal(t, "the next", w.of(2*time.Minute), "a")
		if o := toldOf(t, ledger, time.Minute); len(o) != 1 || o[0].Cause != store.SlotEnded || !o[0].GivenUp {
			t.Errorf("the ledger tells %+v, want that it was cut", o)
		}
	})
}

func TestARunThatTakesTooLongHasFailed(t *testing.T) {
	for _, timeout := range []time.Duration{20 * time.Second, 100 * time.Second} {
		bubble(t, timeout.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: time.Hour})
			both := []*running{}
			for n, name := range []string{"a", "b"} {
				o := minutely(name, n)
				o.Job.Timeout, o.Job.MaxAttempts = timeout, 2
				both = append(both, runs(t, ledger.Handle(), o, w.run))
			}
			at(4*time.Minute + 30*time.Second)
			var failed []event.TaskFailed
			for _, x := range both {
				failed = append(failed, observed[event.TaskFailed](x.worker)...)
				for _, e := range observed[event.Expired](x.worker) {
					if took := since(e.Lease.Slot.Start); took == time.Minute && e.Why != workerlease.TimedOut {
						t.Errorf("the lease ended because of %q", e.Why)
					}
				}
			}
			want := 2
			if timeout > time.Minute {
				want = 1 // Its slot is over, and so there is no other attempt.
			}
			if len(failed) != want {
				t.Fatalf("observed %+v, want %d attempts that timed out", failed, want)
			}
			for _, e := range failed {
				if e.Cause != store.TimedOut || !errors.Is(e.Err, workerlease.ErrTimedOut) || e.GivenUp != (e.Lease.Attempt == 2) {
					t.Errorf("observed %+v", e)
				}
			}
			for _, slot := range minutes(3, 4) {
				if n := len(w.of(slot)); n != 1 {
					t.Errorf("the slot of %v is run %d times, want once", slot, n)
				}
			}
		})
	}
}

func TestOrdersWaitForWorkThatHasToFinishUnlessItIsToEndNow(t *testing.T) {
	for _, now := range []bool{false, true} {
		bubble(t, fmt.Sprint("now ", now), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: 130 * time.Second})
			a := runs(t, ledger.Handle(), minutely("a", 0), w.run)
			at(70 * time.Second)
			give(t, ledger.Handle(), operate.Order{Kind: store.OrderPause, WorkerType: "job", For: time.Hour, Now: now, Reason: "a test"})
			at(5 * time.Minute)
			failed := observed[event.TaskFailed](a.worker)
			if n := len(observed[event.TaskSucceeded](a.worker)); n != 1-len(failed) || (len(failed) == 1) != now {
				t.Errorf("%d done, failed %+v", n, failed)
			}
			if now && failed[0].Cause != store.Ordered {
				t.Errorf("failed because of %q", failed[0].Cause)
			}
			if n := len(w.calls); n != 1 {
				t.Errorf("%d runs, want one", n)
			}
		})
	}
}

// A worker that is stopped while its run goes on over its slot frees the rest at once, as any other does.
func TestAWorkerThatIsStoppedBeyondItsSlotFreesTheRest(t *testing.T) {
	for _, stop := range []time.Duration{150 * time.Second, 179500 * time.Millisecond, 181 * time.Second} {
		bubble(t, stop.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := minutely("a", 0)
			o.FailoverWithin = 30 * time.Second
			a := runs(t, ledger.Handle(), o, untilTold)
			at(stop)
			a.cancel()
			at(stop + 100*time.Millisecond)
			last := newest(t, ledger)
			if o, _ := last.Outcome(); last.Kind != store.KindRelease || since(last.WindowEnd) > stop+100*time.Millisecond || o.Cause != store.Stopped {
				t.Errorf("the newest record is %+v, want a release that says that the worker was stopped", last)
			}
		})
	}
}

// a finishes in the next slot, and can't say so before its window has ended. b starts and begins that slot, and what a then
// says is done is its own slot alone.
func TestASlotIsNotDoneByEarlierWorkThatIsRecordedAfterAnotherHasBegunIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := newWorking(map[time.Duration]time.Duration{time.Minute: 78 * time.Second, 2 * time.Minute: 25 * time.Second})
		cut := struck(t, ledger.Handle(), during(131*time.Second, 146*time.Second, faultstore.Down()))
		starts := func(name string, l store.Ledger) {
			o := minutely(name, 0)
			o.Job.CatchUp = workerlease.CatchUpNewest
			runsAtOnce(t, l, o, w.run)
		}
		w.takes[0] = 30 * time.Second // A type that was never done catches nothing up.
		starts("a", cut)
		at(142 * time.Second)
		starts("b", ledger.Handle())
		at(3*time.Minute - time.Second)
		equal(t, "the next", w.of(2*time.Minute), "b")
		var done []string
		for _, r := range records(t, ledger) {
			if d, err := store.ParseDone(r.Done); err == nil && r.Kind == store.KindDone {
				done = append(done, fmt.Sprint(r.InstanceID, " ", since(d.Start)))
			}
		}
		equal(t, "done", done, "a 0s", "b 1m0s", "b 2m0s")
	})
}
