package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func TestATaskThatRunsWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
			switch slot := since(l.Slot.Start); {
			case slot == 10*time.Minute: // returns early
				return nil
			case slot == 15*time.Minute && l.InstanceID == "a":
				time.Sleep(30 * time.Second)
				return errWork
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		a := runs(t, ledger.Handle(), parted("a", 0, 20*time.Second), j.run)
		runs(t, ledger.Handle(), parted("b", 2, 20*time.Second), j.run)
		at(24 * time.Minute)
		for slot, want := range map[time.Duration][]string{
			5 * time.Minute: {"a"}, 10 * time.Minute: {"a"}, 15 * time.Minute: {"a", "b"}, 20 * time.Minute: {"a"},
		} {
			equal(t, fmt.Sprint("slot ", slot), j.of(slot), want...)
		}
		if f := observed[workerlease.TaskFailed](a.worker); len(f) != 1 || !errors.Is(f[0].Err, errWork) {
			t.Errorf("failures observed: %+v, want one of %v", f, errWork)
		}
		var ends []workerlease.Reason
		for _, e := range observed[workerlease.Expired](a.worker) {
			ends = append(ends, e.Why)
		}
		equal(t, "reasons", ends, workerlease.WindowEnded, workerlease.WindowEnded, workerlease.Failed)
	})
}

func TestATaskThatPanicsOrEndsItsGoroutineHasFailed(t *testing.T) {
	ends := map[string]func(){"panic": func() { panic("jam") }, "goexit": runtime.Goexit}
	for name, end := range ends {
		for _, mode := range []string{"while held", "while it leads on", "once"} {
			bubble(t, name+" "+mode, func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				o := parted("a", 0, 20*time.Second)
				o.Continuous = mode == "while it leads on"
				if mode == "once" {
					o.Job = &workerlease.Job{}
				}
				j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
					leads := mode == "while it leads on" && since(l.Slot.Start) == 5*time.Minute
					if l.InstanceID == "a" && (leads || since(l.Slot.Start) == 10*time.Minute) {
						time.Sleep(10*time.Minute + 30*time.Second - time.Since(t0))
						end()
					}
					if mode == "once" {
						return nil
					}
					<-ctx.Done()
					return context.Cause(ctx)
				}}
				a := runs(t, ledger.Handle(), o, j.run)
				o.InstanceID, o.Priority = "b", 2
				runs(t, ledger.Handle(), o, j.run)
				at(10*time.Minute + 31*time.Second)
				released := slices.ContainsFunc(records(t, ledger), func(r store.Record) bool {
					return r.Kind == store.KindRelease && r.InstanceID == "a"
				})
				if !released {
					t.Error("what was left of the slot was not released")
				}
				at(19 * time.Minute)
				calls := map[time.Duration][]string{10 * time.Minute: {"a", "b"}, 15 * time.Minute: {"a"}}
				if mode == "while it leads on" {
					calls = map[time.Duration][]string{5 * time.Minute: {"a"}, 10 * time.Minute: {"b"}, 15 * time.Minute: {"a"}}
				}
				for slot, want := range calls {
					equal(t, fmt.Sprint("slot ", slot), j.of(slot), want...)
				}
				failed, panics := observed[workerlease.TaskFailed](a.worker), observed[workerlease.Panic](a.worker)
				switch {
				case name == "panic" && (len(panics) != 1 || len(failed) != 0 || !errors.Is(panics[0].Err, workerlease.ErrPanicked)):
					t.Errorf("observed %v and %v, want one panic", panics, failed)
				case name == "goexit" && (len(failed) != 1 || len(panics) != 0 || !strings.Contains(failed[0].Err.Error(), "ended its goroutine")):
					t.Errorf("observed %v and %v, want one failure", panics, failed)
				}
				var failures int
				for _, e := range observed[workerlease.Expired](a.worker) {
					if e.Why == workerlease.Failed {
						failures++
					}
				}
				if failures != 1 {
					t.Errorf("%d leases ended with %q, want one", failures, workerlease.Failed)
				}
			})
		}
	}
}
