package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// toldOf is what the ledger tells of the slot of a minute.
func toldOf(t *testing.T, ledger *memory.Ledger, slot time.Duration) []store.Outcome {
	return slices.DeleteFunc(told(t, ledger), func(o store.Outcome) bool { return since(o.SlotStart) != slot })
}

// A run that takes too long has failed by that, also if it ends well when it is told to end: nothing says that it is done.
func TestARunThatTakesTooLongHasFailedHoweverItEnds(t *testing.T) {
	for name, run := range map[string]func(context.Context) error{
		"well":  func(ctx context.Context) error { <-ctx.Done(); return nil },
		"badly": func(ctx context.Context) error { <-ctx.Done(); return errors.New("signal: terminated") },
		"late":  func(context.Context) error { time.Sleep(90 * time.Second); return nil },
	} {
		for _, stalls := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, ", stalls ", stalls), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				o, cause := minutely("a", 0), store.TimedOut
				o.Job.MaxAttempts, o.Job.Timeout = 1, 20*time.Second
				if stalls {
					o.Job.Timeout, o.ProgressWithin, cause = 0, 20*time.Second, ""
				}
				a := runs(t, ledger.Handle(), o, func(ctx context.Context, l workerlease.Lease) error {
					if since(l.Slot.Start) != time.Minute {
						return nil
					}
					return run(ctx)
				})
				at(5 * time.Minute)
				if told := toldOf(t, ledger, time.Minute); len(told) != 1 || told[0].Result != store.Failed || told[0].Cause != cause || !told[0].GivenUp {
					t.Errorf("the ledger tells %+v, want that it has failed, and is given up", told)
				}
				failed, done := len(observed[event.TaskFailed](a.worker)), 0
				for _, e := range observed[event.TaskSucceeded](a.worker) {
					if since(e.Lease.Slot.Start) == time.Minute {
						done++
					}
				}
				if given := len(observed[event.Exhausted](a.worker)); failed != 1 || done != 0 || given != 1 {
					t.Errorf("%d failed, %d done, %d given up, want that it has failed once, and is given up", failed, done, given)
				}
				for _, e := range observed[event.SlotDone](a.worker) {
					if since(e.Slot.Start) == time.Minute {
						t.Errorf("observed %+v", e)
					}
				}
			})
		}
	}
}

// So has a single claim, and Complete says so.
func TestAClaimThatTakesTooLongIsNotCompleted(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.Job.MaxAttempts, o.Job.Timeout = 1, time.Minute
		at(6 * time.Minute)
		claim, err := attempt(t, ledger.Handle(), o)
		must(t, err)
		<-claim.Context().Done()
		if err := claim.Complete(t.Context()); !errors.Is(err, workerlease.ErrTimedOut) {
			t.Errorf("Complete: %v, want that it has timed out", err)
		}
		if o := told(t, ledger); len(o) != 1 || o[0].Cause != store.TimedOut || !o[0].GivenUp {
			t.Errorf("the ledger tells %+v, want one attempt that timed out", o)
		}
	})
}

// A worker whose job its slot cuts, slot after slot, lets others go first, as one whose job fails does.
func TestAWorkerWhoseJobIsCutInEachSlotStepsBack(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := minutely("a", 0)
		o.Job.Overrun, o.Job.MaxAttempts = workerlease.Stop, 1
		a := runs(t, ledger.Handle(), o, untilTold)
		at(5*time.Minute + 30*time.Second)
		if e := observed[event.SteppedBack](a.worker); len(e) == 0 || e[0].Failures != 3 {
			t.Errorf("observed %+v, want that it steps back after three slots", e)
		}
	})
}

// Who was cut by its slot has said so by the time at which the slot is run late.
func TestWhoIsCutByItsSlotHasNotDied(t *testing.T) {
	for _, late := range []workerlease.CatchUp{workerlease.CatchUpNewest, workerlease.CatchUpAll} {
		bubble(t, late.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := minutely("a", 1)
			o.Job.CatchUp, o.Job.Overrun, o.FailoverWithin = late, workerlease.Stop, 20*time.Second
			run := func(ctx context.Context, l workerlease.Lease) error {
				if since(l.Slot.Start) == 2*time.Minute && l.Attempt == 1 {
					return waits(ctx, time.Hour)
				}
				return nil
			}
			a := runs(t, ledger.Handle(), o, run)
			at(2*time.Minute + 10*time.Second)
			o.InstanceID, o.Priority = "b", 0
			b := runs(t, ledger.Handle(), o, run)
			at(4 * time.Minute)
			if told := toldOf(t, ledger, 2*time.Minute); len(told) < 2 || told[0].Cause != store.SlotEnded || told[1].Result != store.Succeeded {
				t.Errorf("the ledger tells %+v, want that the first attempt was cut, and the second succeeded", told)
			}
			if n := len(observed[event.WorkerDied](a.worker)) + len(observed[event.WorkerDied](b.worker)); n > 0 {
				t.Errorf("told dead %d times", n)
			}
		})
	}
}
