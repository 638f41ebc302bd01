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
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
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
		if f := observed[event.TaskFailed](a.worker); len(f) != 1 || !errors.Is(f[0].Err, errWork) {
			t.Errorf("failures observed: %+v, want one of %v", f, errWork)
		}
		var ends []workerlease.Reason
		for _, e := range observed[event.Expired](a.worker) {
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
				failed, panics := observed[event.TaskFailed](a.worker), observed[event.Panic](a.worker)
				switch {
				case name == "panic" && (len(panics) != 1 || len(failed) != 0 || !errors.Is(panics[0].Err, workerlease.ErrPanicked)):
					t.Errorf("observed %v and %v, want one panic", panics, failed)
				case name == "goexit" && (len(failed) != 1 || len(panics) != 0 || !strings.Contains(failed[0].Err.Error(), "ended its goroutine")):
					t.Errorf("observed %v and %v, want one failure", panics, failed)
				}
				var failures int
				for _, e := range observed[event.Expired](a.worker) {
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

// What the work wrote is in the record of its outcome: of a job that is done or has failed, of a task that has failed, and of a claim.
func TestWhatTheWorkWroteIsInTheLedger(t *testing.T) {
	wrote := func(err error, then func(workerlease.Lease)) workerlease.Task {
		return func(_ context.Context, l workerlease.Lease) error {
			l.Wrote(l.InstanceID + " wrote\n")
			then(l)
			return err
		}
	}
	nothing := func(workerlease.Lease) {}
	job, plain, hangs := named("job", 0), named("plain", 0), named("hangs", 0)
	job.Job = &workerlease.Job{MaxAttempts: 1}
	hangs.Job = &workerlease.Job{MaxAttempts: 1, Timeout: time.Minute}
	stuck := plain
	stuck.ProgressWithin = 30 * time.Second
	for name, test := range map[string]struct {
		o    workerlease.Options
		task workerlease.Task
		want string
	}{
		"a job that is done":       {job, wrote(nil, nothing), "job wrote\n"},
		"a job that has failed":    {job, wrote(errWork, nothing), "job wrote\n"},
		"a task that has failed":   {plain, wrote(errWork, nothing), "plain wrote\n"},
		"one that keeps its lease": {plain, wrote(nil, func(l workerlease.Lease) { l.FailedWith(errWork) }), "plain wrote\n"},
		"a job that is timed out": {hangs, func(ctx context.Context, l workerlease.Lease) error {
			<-ctx.Done()
			time.Sleep(time.Second) // in which it is told to end
			l.Wrote("hangs wrote\n")
			return errWork
		}, "hangs wrote\n"},
		"a task without progress": {stuck, func(ctx context.Context, l workerlease.Lease) error {
			<-ctx.Done()
			l.Wrote("plain wrote\n")
			return errWork
		}, "plain wrote\n"},
		"one that writes much at end": {job, wrote(nil, func(l workerlease.Lease) { l.Wrote(strings.Repeat("more\n", 1<<20)) }), "…\n" + strings.Repeat("more\n", 3276)},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			runs(t, ledger.Handle(), test.o, test.task)
			at(9 * time.Minute)
			if o := told(t, ledger); len(o) != 1 || o[0].Output != test.want {
				t.Errorf("the ledger tells %.120v, want one outcome with %.60q", o, test.want)
			}
		})
	}
}

// In a group, what came of work is told while it is yet to end. It isn't told once more because that has written something meanwhile.
func TestWhatIsWrittenWhileTheOutcomeIsToldTellsItNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		isOutcome := func(c faultstore.Call) bool { return c.Record.Kind == store.KindOutcome }
		slow := struck(t, ledger.Handle(), when(isOutcome, faultstore.Fault{After: 3 * time.Second}))
		o := named("a", 0)
		o.Group, o.ProgressWithin = "g", 30*time.Second
		runs(t, slow, o, func(ctx context.Context, l workerlease.Lease) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			l.Wrote("it wrote\n")
			return errWork
		})
		at(9 * time.Minute)
		if n := ofKind(t, ledger, store.KindOutcome); n != 1 {
			t.Errorf("what came of the work is told by %d records, want one", n)
		}
	})
}

// A claim's work is recorded by Complete and by Fail.
func TestWhatAClaimsWorkWroteIsInTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for slot, end := range map[string]func(*workerlease.Claim) error{
			"done":   func(c *workerlease.Claim) error { return c.Complete(t.Context()) },
			"failed": func(c *workerlease.Claim) error { c.Fail(errWork); return c.Release(t.Context()) },
		} {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			o.Job = &workerlease.Job{}
			c, err := workerlease.TryClaim(t.Context(), ledger.Handle(), o)
			must(t, err)
			c.Lease.Wrote("it wrote\n")
			must(t, end(c))
			if o := told(t, ledger); len(o) != 1 || o[0].Output != "it wrote\n" {
				t.Errorf("%s: the ledger tells %+v, want the output", slot, o)
			}
		}
	})
	(workerlease.Lease{}).Wrote("nothing happens")
}
