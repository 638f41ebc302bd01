package workerlease_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// lost is how often a worker says that an attempt was lost, or the last one.
func lost(w *running) int {
	return len(observed[event.Exhausted](w.worker)) + len(observed[event.WorkerDied](w.worker))
}

func idle(context.Context, workerlease.Lease) error { return nil }

// A worker that was told to stop tells that while its code runs on. What it says then repeats what others have said meanwhile.
func TestWhatIsToldMeanwhileUndoesNothing(t *testing.T) {
	bubble(t, "a pause", func(t *testing.T) {
		runs := 0
		_, ledger := slowStop(t, time.Hour, time.Minute, 3, "", func(context.Context, workerlease.Lease) error { runs++; return nil })
		at(time.Hour + 500*time.Millisecond)
		give(t, ledger, operate.Order{Kind: store.OrderPause, WorkerType: "job", For: 10 * time.Hour})
		at(5 * time.Hour)
		if o := newest(t, ledger).Orders; o == "" || runs != 0 {
			t.Errorf("paused for 10h: orders %q, %d runs meanwhile, want the pause and none", o, runs)
		}
	})
	bubble(t, "a slot that is done", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := daily("a", 5)
		link := faultstore.New(ledger, faultstore.Options{})
		a := runsAtOnce(t, link, o, endsAfter(10*time.Minute))
		at(time.Minute)
		done := 0
		task := func(context.Context, workerlease.Lease) error { done++; return nil }
		o.InstanceID, o.Priority = "b", 1
		runsAtOnce(t, ledger.Handle(), o, task)
		at(time.Hour)
		link.Break(faultstore.Down())
		a.cancel()
		at(time.Hour + time.Minute)
		link.Mend()
		at(time.Hour + 15*time.Minute)
		o.InstanceID = "c"
		runsAtOnce(t, ledger.Handle(), o, task)
		at(20 * time.Hour)
		if done != 1 {
			t.Errorf("the slot was done %d times", done)
		}
	})
}

// That an attempt counts for nothing is told whatever fails, and whatever of the user's code runs on.
func TestWhatIsToldMeanwhileIsToldInTheEnd(t *testing.T) {
	for n := range 12 {
		takes := 16*time.Second + time.Duration(n)*500*time.Millisecond
		bubble(t, fmt.Sprint("the store is down until ", takes), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := daily("a", 1)
			link := faultstore.New(ledger, faultstore.Options{})
			a := runsAtOnce(t, link, o, endsAfter(takes))
			at(time.Minute)
			o.InstanceID, o.Priority = "b", 1
			b := runsAtOnce(t, ledger.Handle(), o, idle)
			at(time.Hour)
			link.Break(faultstore.Down())
			a.cancel()
			at(time.Hour + takes - 50*time.Millisecond)
			link.Mend()
			if at(20 * time.Hour); lost(b) > 0 {
				t.Error("the attempt is lost, or was the last one")
			}
		})
	}
	for _, order := range []store.OrderKind{"", store.OrderRelease} {
		bubble(t, "code of RunIfHeld, "+string(order), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := daily("a", 1)
			a := runsAtOnce(t, ledger.Handle(), o, endsAfter(0))
			at(time.Minute)
			go func() {
				_, _ = a.worker.RunIfHeld(context.Background(), func(ctx context.Context, _ workerlease.Lease) error {
					<-ctx.Done()
					time.Sleep(time.Minute)
					return nil
				})
			}()
			o.InstanceID, o.Priority = "b", 1
			b := runsAtOnce(t, ledger.Handle(), o, idle)
			if at(time.Hour); order == "" {
				a.cancel()
			} else {
				give(t, ledger, operate.Order{Kind: order, WorkerType: "job"})
			}
			if at(20 * time.Hour); lost(b) > 0 {
				t.Error("the attempt is lost, or was the last one")
			}
		})
	}
	bubble(t, "orders hide it", func(t *testing.T) {
		b, ledger := slowStop(t, time.Hour, time.Minute, 1, "", idle)
		at(time.Hour + 9*time.Second)
		for range 3 {
			give(t, ledger, operate.Order{Kind: store.OrderPrefer, Target: "b", For: time.Hour, WorkerType: "job"})
			time.Sleep(time.Second)
		}
		if at(20 * time.Hour); lost(b) > 0 {
			t.Error("the attempt is lost, or was the last one")
		}
	})
}

// What a run came to is told, too, that ends while it is on its way that it was told to.
func TestALastWordFollowsTheFirst(t *testing.T) {
	for n := range 16 {
		takes := time.Second + time.Duration(n)*20*time.Millisecond
		bubble(t, fmt.Sprint(takes), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			a := runsAtOnce(t, slower(t, ledger, 50*time.Millisecond), daily("a", 1), func(ctx context.Context, l workerlease.Lease) error {
				<-ctx.Done()
				time.Sleep(takes)
				l.Wrote("tidied")
				return errWork
			})
			at(time.Hour)
			a.cancel()
			at(2 * time.Hour)
			last, _ := newest(t, ledger).Outcome()
			if last.Error != errWork.Error() || last.Output != "tidied" || newest(t, ledger).Spared != 1 {
				t.Errorf("the last word is %+v, %d spared", last, newest(t, ledger).Spared)
			}
		})
	}
}

// A worker says when it tries again, once for each failure, whatever that was by.
func TestTheNextAttemptIsToldOnce(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"an error": 0, "a time-out": time.Minute} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := daily("a", 3)
			o.Job.Timeout = timeout
			w := runsAtOnce(t, ledger.Handle(), o, func(ctx context.Context, _ workerlease.Lease) error {
				if timeout > 0 {
					<-ctx.Done()
				}
				return errWork
			})
			at(23 * time.Hour)
			if n := len(observed[event.Postponed](w.worker)); n != 2 {
				t.Errorf("%d Postponed events, want 2", n)
			}
		})
	}
	bubble(t, "of slots that are late", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.LeaseInterval, o.Job.MaxAttempts, o.Job.CatchUp = time.Hour, 4, workerlease.CatchUpAll
		a := runsAtOnce(t, ledger.Handle(), o, idle)
		at(30 * time.Minute)
		a.cancel()
		at(3*time.Hour + 20*time.Minute)
		b := runsAtOnce(t, ledger.Handle(), o, func(_ context.Context, l workerlease.Lease) error {
			if l.Attempt < 3 && l.Slot.Start.Before(t0.Add(3*time.Hour)) {
				return errWork
			}
			return nil
		})
		at(5 * time.Hour)
		if failed, told := len(observed[event.TaskFailed](b.worker)), len(observed[event.Postponed](b.worker)); failed != 4 || told != failed {
			t.Errorf("%d failures, %d Postponed events, want 4 of each", failed, told)
		}
	})
}

// The worker of a trigger's run dies right before a slot of the job's own. The other one runs that slot, and then both triggers, at once:
// after a crash nobody waits.
func TestATriggerWhoseWorkerDiesBeforeASlotIsServed(t *testing.T) {
	bubble(t, "slots of a minute", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var runs []time.Duration
		dies := faultstore.New(ledger, faultstore.Options{})
		o := perSlot("a", 0)
		o.LeaseInterval, o.Job.MinRetry = time.Minute, 10*time.Minute
		start(t, setup{Options: o, ledger: dies, task: func(_ context.Context, l workerlease.Lease) error {
			if l.Triggered {
				time.Sleep(48 * time.Second)
				dies.Break(faultstore.Down())
				time.Sleep(10 * time.Hour)
			}
			return nil
		}})
		o.InstanceID, o.Priority, o.DrainTimeout = "b", 1, 12*time.Hour
		b := start(t, setup{Options: o, ledger: ledger.Handle(), task: func(_ context.Context, l workerlease.Lease) error {
			if l.Triggered {
				runs = append(runs, time.Since(t0))
			}
			return nil
		}})
		at(125 * time.Second)
		give(t, ledger, operate.Order{Kind: store.OrderTrigger, WorkerType: "job", For: 6 * time.Hour})
		at(time.Hour)
		give(t, ledger, operate.Order{Kind: store.OrderTrigger, WorkerType: "job", For: time.Hour})
		at(2*time.Hour + 30*time.Second)
		if len(runs) != 2 || runs[0] > 4*time.Minute {
			t.Errorf("runs at %v, want one soon after the crash, and one of the second trigger", runs)
		}
		must(t, b.StopLeasing(t.Context()))
		if late := time.Since(t0); late > 3*time.Hour {
			t.Errorf("the idle worker stopped %v after all that", late)
		}
	})
}

// Where orders leave no room to say when a trigger's run may be tried again, they say how often it was.
func TestATriggerAmongManyOrdersIsCounted(t *testing.T) {
	for _, n := range []int{180, 205, 212, 216} {
		bubble(t, fmt.Sprint(n), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			runs := 0
			o := perSlot("a", 0)
			o.LeaseInterval, o.Job.MaxAttempts = time.Minute, 3
			start(t, setup{Options: o, ledger: ledger.Handle(), task: func(_ context.Context, l workerlease.Lease) error {
				if !l.Triggered {
					return nil
				}
				runs++
				return errWork
			}})
			at(90 * time.Second)
			for i := range 5 {
				give(t, ledger, operate.Order{Kind: store.OrderDrain, Target: fmt.Sprint("host", i), Reason: strings.Repeat("x", n), WorkerType: "job", For: 20 * time.Hour})
			}
			give(t, ledger, operate.Order{Kind: store.OrderTrigger, WorkerType: "job", For: 6 * time.Hour, Reason: strings.Repeat("y", 180)})
			if at(3 * time.Hour); runs != 3 {
				t.Errorf("%d runs, want 3", runs)
			}
		})
	}
}
