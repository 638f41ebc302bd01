package workerlease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func TestAWorkerBeginsWithAnEventThatNamesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		at(20 * time.Minute)
		if names := w.names(0); names[0] != "Started" {
			t.Errorf("the first event is %s, want Started", names[0])
		}
		if e := observed[event.Started](w); len(e) != 1 || e[0].Self != w.WorkerLease {
			t.Errorf("Started = %+v, want one of the worker", e)
		}
	})
}

func TestEachOperationIsReportedWithHowLongItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 7 * time.Millisecond
		counter := faultstore.NewCounter(memory.New(memory.Options{}))
		w := start(t, setup{ledger: struck(t, counter, eachCall(faultstore.Fault{Before: takes}))})
		at(21 * time.Minute)
		got := map[string]int{}
		for _, e := range observed[event.Operated](w) {
			got[e.Operation]++
			if e.Took < takes || e.Took > 2*takes || e.Err != nil {
				t.Errorf("Operated = %+v, want %v or a bit more, and no error", e, takes)
			}
		}
		for op, n := range counter.Counts() {
			if got[string(op)] != n {
				t.Errorf("%d events of %s, want %d", got[string(op)], op, n)
			}
		}
		if got["append"] != 4 {
			t.Errorf("operations %v, want 4 appends", got)
		}
	})
}

func TestTheEndOfAnOperationHasItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		link.Break(faultstore.Down())
		w := start(t, setup{ledger: link})
		at(time.Second)
		e, f := observed[event.Operated](w), observed[event.StoreFailed](w)
		if len(e) == 0 || len(e) != len(f) || e[0].Operation != "now" || e[0].Err == nil || !errors.Is(f[0].Err, e[0].Err) {
			t.Errorf("Operated = %+v, want the operations of %+v", e, f)
		}
	})
}

func TestWhatComesOfTasksIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slot := 0
		w := start(t, setup{task: func(ctx context.Context, _ workerlease.Lease) error {
			if slot++; slot == 2 {
				return errors.New("no")
			}
			if slot == 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(2 * time.Second)
			return nil
		}})
		at(24 * time.Minute)
		good, bad := observed[event.TaskSucceeded](w), observed[event.TaskFailed](w)
		if len(good) != 2 || len(bad) != 1 {
			t.Fatalf("TaskSucceeded %+v and TaskFailed %+v, want two and one: a task that is cut off is neither", good, bad)
		}
		first := good[0]
		if first.Took != 2*time.Second || since(first.Lease.Slot.Start) != 5*time.Minute {
			t.Errorf("TaskSucceeded = %+v, want after 2 s in the slot of 5m", first)
		}
		succeededAt(t, first, begin(5*time.Minute)+2*time.Second)
	})
}

// succeededAt checks when a success was, within the uncertainty of store time.
func succeededAt(t *testing.T, e event.TaskSucceeded, want time.Duration) {
	t.Helper()
	if off := (since(e.At) - want).Abs(); off > 2*time.Millisecond {
		t.Errorf("succeeded at %v, want %v", since(e.At), want)
	}
}

func TestCodeThatKeepsItsLeaseReportsWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended workerlease.Lease
		w := start(t, setup{work: func(ctx context.Context, l workerlease.Lease) {
			if since(l.Slot.Start) == 5*time.Minute {
				l.Succeeded()
			} else {
				l.Failed()
			}
			<-ctx.Done()
			ended = l
		}})
		at(12 * time.Minute)
		good, bad := observed[event.TaskSucceeded](w), observed[event.Faltered](w)
		if len(good) != 1 || len(bad) != 1 || since(good[0].Lease.Slot.Start) != 5*time.Minute || since(bad[0].Lease.Slot.Start) != 10*time.Minute || good[0].Took != 0 {
			t.Errorf("TaskSucceeded %+v, Faltered %+v, want one each, of 5m and 10m", good, bad)
		}
		succeededAt(t, good[0], begin(5*time.Minute))
		at(15*time.Minute - 100*time.Millisecond)
		ended.Succeeded()
		ended.Failed()
		workerlease.Lease{}.Succeeded()
		synctest.Wait()
		if n := len(observed[event.TaskSucceeded](w)) + len(observed[event.Faltered](w)); n != 2 {
			t.Errorf("%d events after the lease has ended, want none", n-2)
		}
	})
}

func TestObserversGetEachEventInOrder(t *testing.T) {
	var got []string
	note := func(name string) event.Observer {
		return event.ObserverFunc(func(event.Event) { got = append(got, name) })
	}
	event.Observers(note("a"), nil, note("b")).Observe(event.Conflict{})
	equal(t, "observers", got, "a", "b")
}

func TestThatAllCodeHasReturnedIsTheLastThingReportedOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{task: func(ctx context.Context, l workerlease.Lease) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return errors.New("late")
		}})
		at(10*time.Minute + 1500*time.Millisecond)
		if e := observed[event.Returned](w); len(e) != 0 {
			t.Errorf("Returned = %+v while the task runs", e)
		}
		at(10*time.Minute + 10*time.Second)
		equal(t, "events of the end of a lease", w.names(10*time.Minute - 100*time.Millisecond)[:3], "Overrun", "TaskFailed", "Returned")
		if e := observed[event.Returned](w); len(e) != 1 || since(e[0].Lease.Slot.Start) != 5*time.Minute {
			t.Errorf("Returned = %+v, want one, of the slot of 5m", e)
		}
	})
}

// billed is a ledger that bills every request and, with an append, shows its clock.
type billed struct {
	store.Ledger
	fails error
}

func (b billed) Append(ctx context.Context, r store.Record) error {
	store.Charge(ctx, 2)
	store.Charge(ctx, 3.5) // a second try
	if b.fails != nil {
		return b.fails
	}
	err := b.Ledger.Append(ctx, r)
	if s, clockErr := b.Ledger.Now(ctx); clockErr == nil {
		store.Tell(ctx, s)
	}
	return err
}

func (b billed) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	store.Charge(ctx, 1)
	return b.Ledger.Tail(ctx, workerType, limit)
}

func (b billed) Now(ctx context.Context) (store.Stamp, error) {
	store.Charge(ctx, 0.5)
	return b.Ledger.Now(ctx)
}

func TestWhatTheStoreChargesIsSummedByOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: billed{Ledger: memory.New(memory.Options{})}, Options: named("w", 0)})
		at(11 * time.Minute)
		want := workerlease.Charges{}
		for _, e := range observed[event.Charged](w) {
			want[e.Operation] += e.Units
		}
		got := w.Status().Charges
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Status().Charges differ from the sums of the events (-events +status):\n%s", diff)
		}
		appends := len(observed[event.Claimed](w))
		if appends == 0 || got["append"] != 5.5*float64(appends) || got["tail"] < 1 || got["now"] < 0.5 {
			t.Errorf("Status().Charges = %v after %d appends at 5.5", got, appends)
		}
		names := w.names(6 * time.Minute)
		if i := slices.Index(names, "Claimed"); i < 2 || !slices.Equal(names[i-2:i], []string{"ClockSample", "Charged"}) {
			t.Errorf("events = %q, want a sample of the clock that the append showed, and its charge, before Claimed", names)
		}
		if sum := got["append"] + got["tail"] + got["now"]; got.Total() != sum {
			t.Errorf("Total() = %v, want %v", got.Total(), sum)
		}
		got["append"] = 0
		if w.Status().Charges["append"] == 0 {
			t.Error("the caller's copy of the charges is the worker's own")
		}
	})
}

func TestAFailedOperationIsChargedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: billed{memory.New(memory.Options{}), errors.New("no reply")}, Options: named("w", 0)})
		at(6 * time.Minute)
		if got := w.Status(); got.Charges["append"] < 5.5 || got.Allocated > 0 {
			t.Errorf("Status() = %v, %v, want failed appends charged", got, got.Charges)
		}
	})
}

func TestAStoreThatBillsNothingHasNoCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: memory.New(memory.Options{}), Options: named("w", 0)})
		at(6 * time.Minute)
		if got := w.Status().Charges; got != nil || len(observed[event.Charged](w)) > 0 {
			t.Errorf("Status().Charges = %v, want none", got)
		}
	})
}
