package workerlease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// These are what a worker without any memory reads in the ledger, in mid-slot.

// toldMissed are the slots that a worker says were missed.
func toldMissed(w *worker) (all []time.Duration) {
	for _, m := range observed[event.Missed](w) {
		for slot := range slots.Upcoming(eachMinute, m.Slot.Start.Add(-1)) {
			if !slot.Start.Before(m.Slot.Start.Add(time.Duration(m.Count) * time.Minute)) {
				break
			}
			all = append(all, since(slot.Start))
		}
	}
	return all
}

func TestAFreshWorkerSaysOfEachSlotWhatBecameOfIt(t *testing.T) {
	failing := errors.New("disk full")
	// The run of the slot of 00:01 goes on until it is told to end.
	intoTheNext := func(ctx context.Context, slot time.Duration) error { return waits(ctx, slot/time.Minute%2*time.Hour) }
	stopped := func(comes time.Duration) func(*testing.T, *memory.Ledger, *worker, *faultstore.Ledger) {
		return func(t *testing.T, _ *memory.Ledger, first *worker, _ *faultstore.Ledger) {
			at(2*time.Minute + 5*time.Second)
			first.stop(t)
			at(comes)
		}
	}
	for name, c := range map[string]struct {
		options func(*workerlease.Options)
		task    func(ctx context.Context, slot time.Duration) error
		happens func(t *testing.T, ledger *memory.Ledger, first *worker, link *faultstore.Ledger)
		want    []int // the minutes of the slots that were missed
	}{
		"it runs to the end of its slot, and the next one is claimed": {
			func(o *workerlease.Options) { o.Job.Overrun = workerlease.Stop },
			func(ctx context.Context, _ time.Duration) error { return waits(ctx, 58*time.Second) },
			func(*testing.T, *memory.Ledger, *worker, *faultstore.Ledger) { at(2*time.Minute + 56*time.Second) }, nil,
		},
		"it has failed for good, and the next one runs": {
			func(o *workerlease.Options) { o.Job.MaxAttempts = 1 },
			func(ctx context.Context, slot time.Duration) error {
				if slot == 2*time.Minute {
					return failing
				}
				return waits(ctx, 20*time.Second)
			},
			func(*testing.T, *memory.Ledger, *worker, *faultstore.Ledger) { at(3*time.Minute + 5*time.Second) }, nil,
		},
		"it was skipped for a run that failed, and the next one runs": {
			func(o *workerlease.Options) { o.Job.MaxAttempts = 1 },
			func(ctx context.Context, slot time.Duration) error {
				if slot == time.Minute {
					_ = waits(ctx, 105*time.Second)
					return failing
				}
				return waits(ctx, 20*time.Second)
			},
			func(*testing.T, *memory.Ledger, *worker, *faultstore.Ledger) { at(3*time.Minute + 5*time.Second) }, nil,
		},
		"it is paused": {
			nil, nil,
			func(t *testing.T, ledger *memory.Ledger, _ *worker, _ *faultstore.Ledger) {
				at(time.Minute + 30*time.Second)
				_, err := operate.On(ledger).Give(t.Context(), operate.Order{WorkerType: "job", Kind: store.OrderPause, For: time.Hour, InstanceID: "test"})
				must(t, err)
				at(4*time.Minute + 30*time.Second)
			}, nil,
		},
		"a run went into it, and was stopped":                            {nil, intoTheNext, stopped(2*time.Minute + 30*time.Second), []int{2}},
		"a run went into it, and was stopped; the next one was nobody's": {nil, intoTheNext, stopped(3*time.Minute + 30*time.Second), []int{2, 3}},
		"a run went into it, and its worker died; the next one was nobody's": {
			nil, intoTheNext,
			func(_ *testing.T, _ *memory.Ledger, _ *worker, link *faultstore.Ledger) {
				at(2*time.Minute + time.Second)
				link.Break(faultstore.Down())
				at(3*time.Minute + 30*time.Second)
			},
			[]int{2, 3},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			link := faultstore.New(inner, faultstore.Options{})
			o := minutely("first", 0)
			if c.options != nil {
				c.options(&o)
			}
			task := func(ctx context.Context, l workerlease.Lease) error {
				if c.task == nil {
					return waits(ctx, time.Second)
				}
				return c.task(ctx, since(l.Slot.Start))
			}
			first := start(t, setup{asGiven: true, ledger: link, Options: o, task: task})
			c.happens(t, inner, first, link)
			o.InstanceID, o.Priority = "fresh", 1
			fresh := start(t, setup{asGiven: true, ledger: inner.Handle(), Options: o, task: task})
			at(time.Since(t0) + 20*time.Second)
			equal(t, "missed", toldMissed(fresh), minutes(c.want...)...)
		})
	}
}

// Of a worker that has died long ago, in the last attempt at the slot that goes on.
func TestAFreshWorkerKnowsThatTheHolderHasDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		o := nightly("victim")
		o.Job.MaxAttempts = 1
		j := &job{do: heeds(time.Hour)}
		start(t, setup{asGiven: true, ledger: link, Options: o, task: j.run})
		standby := o
		standby.InstanceID, standby.Priority = "standby", 1
		b := start(t, setup{asGiven: true, ledger: inner.Handle(), Options: standby, task: j.run})
		at(night + 5*time.Minute)
		link.Break(faultstore.Down())
		at(night + 12*time.Hour)
		standby.InstanceID = "fresh"
		fresh := start(t, setup{asGiven: true, ledger: inner.Handle(), Options: standby, task: j.run})
		at(night + 12*time.Hour + time.Minute)
		for _, w := range []*worker{b, fresh} {
			if h, known := w.Holder(); known || since(w.Status().Due) != night+time.Hour {
				t.Errorf("%s says that %q holds: %v, and that the job is due at %v, want that nobody does, and the night", w.Status().InstanceID, h.InstanceID, known, since(w.Status().Due))
			}
		}
	})
}

// While a run goes on after its slot, a standby knows who has it.
func TestAStandbyKnowsTheHolderWhileItsRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: heeds(170 * time.Second)}
		start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: minutely("holder", 0), task: j.run})
		b := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: minutely("standby", 1), task: j.run})
		at(time.Minute + 10*time.Second)
		for time.Since(t0) < 2*time.Minute+50*time.Second {
			time.Sleep(20 * time.Millisecond)
			if h, known := b.Holder(); !known || h.InstanceID != "holder" {
				t.Fatalf("at %v it says that %q holds: %v", time.Since(t0), h.InstanceID, known)
			}
		}
	})
}

// A slot that always fails keeps back no other for long.
func TestASlotThatAlwaysFailsIsGivenUpWhereAllAreCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := minutely("a", 0)
		o.Job.CatchUp = workerlease.CatchUpAll
		j := &job{}
		j.do = func(ctx context.Context, l workerlease.Lease, _ int) error {
			if since(l.Slot.Start) == 2*time.Minute {
				return errors.New("no such day")
			}
			return waits(ctx, time.Second)
		}
		w := start(t, setup{asGiven: true, Options: o, task: j.run})
		at(20 * time.Minute)
		ran := map[time.Duration]int{}
		for _, slot := range j.ran() {
			ran[slot]++
		}
		if ran[2*time.Minute] != workerlease.CatchUpAttempts || len(observed[event.Exhausted](w)) != 1 {
			t.Errorf("the slot that fails was tried %d times, and given up %d times, want %d and once", ran[2*time.Minute], len(observed[event.Exhausted](w)), workerlease.CatchUpAttempts)
		}
		for m := 3; m < 20; m++ {
			if ran[time.Duration(m)*time.Minute] != 1 {
				t.Errorf("the slot of minute %d was run %d times", m, ran[time.Duration(m)*time.Minute])
			}
		}
	})
}
