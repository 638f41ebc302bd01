package workerlease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestAWorkerBeginsWithAnEventThatNamesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		at(20 * time.Minute)
		if names := w.names(0); names[0] != "Started" {
			t.Errorf("the first event is %s, want Started", names[0])
		}
		if e := observed[workerlease.Started](w); len(e) != 1 || e[0].Self != w.WorkerLease {
			t.Errorf("Started = %+v, want one of the worker", e)
		}
	})
}

func TestEachOperationIsReportedWithHowLongItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 7 * time.Millisecond
		counter := faultstore.NewCounter(memory.New(memory.Options{}))
		link := faultstore.New(counter, faultstore.Options{})
		link.Break(faultstore.Fault{Before: takes})
		w := start(t, setup{ledger: link})
		at(21 * time.Minute)
		got := map[string]int{}
		for _, e := range observed[workerlease.Operated](w) {
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
		e, f := observed[workerlease.Operated](w), observed[workerlease.StoreFailed](w)
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
		good, bad := observed[workerlease.TaskSucceeded](w), observed[workerlease.TaskFailed](w)
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
func succeededAt(t *testing.T, e workerlease.TaskSucceeded, want time.Duration) {
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
		good, bad := observed[workerlease.TaskSucceeded](w), observed[workerlease.Faltered](w)
		if len(good) != 1 || len(bad) != 1 || since(good[0].Lease.Slot.Start) != 5*time.Minute || since(bad[0].Lease.Slot.Start) != 10*time.Minute || good[0].Took != 0 {
			t.Errorf("TaskSucceeded %+v, Faltered %+v, want one each, of 5m and 10m", good, bad)
		}
		succeededAt(t, good[0], begin(5*time.Minute))
		at(15*time.Minute - 100*time.Millisecond)
		ended.Succeeded()
		ended.Failed()
		workerlease.Lease{}.Succeeded()
		synctest.Wait()
		if n := len(observed[workerlease.TaskSucceeded](w)) + len(observed[workerlease.Faltered](w)); n != 2 {
			t.Errorf("%d events after the lease has ended, want none", n-2)
		}
	})
}

func TestMissedSlotsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		w := start(t, setup{ledger: link})
		at(7 * time.Minute)
		link.Break(faultstore.Down())
		at(31 * time.Minute)
		link.Mend()
		at(41 * time.Minute)
		sum := 0
		for _, e := range observed[workerlease.Missed](w) {
			sum += e.Count
		}
		if s := w.Status(); sum != s.Missed || sum < 4 {
			t.Errorf("%d slots missed by events, %d by Status, want at least 4", sum, s.Missed)
		}
	})
}

func TestStatusSaysUpToWhenJobsAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{Options: workerlease.Options{Job: &workerlease.Job{}}, task: func(context.Context, workerlease.Lease) error { return nil }})
		at(4 * time.Minute)
		if s := w.Status(); !s.DoneUntil.IsZero() {
			t.Errorf("DoneUntil = %v before any job", s.DoneUntil)
		}
		at(6 * time.Minute)
		if s := w.Status(); since(s.DoneUntil) != 10*time.Minute {
			t.Errorf("DoneUntil = %v, want the end of the slot: 10m", since(s.DoneUntil))
		}
	})
}

func TestObserversGetEachEventInOrder(t *testing.T) {
	var got []string
	note := func(name string) workerlease.Observer {
		return workerlease.ObserverFunc(func(workerlease.Event) { got = append(got, name) })
	}
	workerlease.Observers(note("a"), nil, note("b")).Observe(workerlease.Conflict{})
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
		if e := observed[workerlease.Returned](w); len(e) != 0 {
			t.Errorf("Returned = %+v while the task runs", e)
		}
		at(10*time.Minute + 10*time.Second)
		equal(t, "events of the end of a lease", w.names(10*time.Minute - 100*time.Millisecond)[:3], "Overrun", "TaskFailed", "Returned")
		if e := observed[workerlease.Returned](w); len(e) != 1 || since(e[0].Lease.Slot.Start) != 5*time.Minute {
			t.Errorf("Returned = %+v, want one, of the slot of 5m", e)
		}
	})
}
