package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// A store that asks for a long pause, once, costs the slot whose claim it throttled.
func TestALongRetryAfterCostsOneSlotAtMost(t *testing.T) {
	for _, op := range []faultstore.Op{faultstore.OpNow, faultstore.OpTail, faultstore.OpAppend} {
		for _, asks := range []time.Duration{50 * time.Minute, 24 * time.Hour} {
			bubble(t, fmt.Sprint(op, " ", asks), func(t *testing.T) {
				w := start(t, setup{ledger: faulty(t, once(op, 3, faultstore.Throttled(asks)))})
				at(61 * time.Minute)
				starts := w.starts()
				for _, slot := range minutes(30, 35, 40, 45, 50, 55, 60) {
					if !slices.Contains(starts, slot) {
						t.Errorf("slots %v, want that of %v", starts, slot)
					}
				}
				if len(starts) < 11 {
					t.Errorf("slots %v, want 11 of the 12", starts)
				}
			})
		}
	}
}

// While the store can't be reached, stopping takes up to the end of the slot, and no longer
// if it is throttled.
func TestStopLeasingEndsWithTheSlotWhateverAStoreThatThrottlesAsksFor(t *testing.T) {
	for _, asks := range []time.Duration{time.Second, 2 * time.Minute, time.Hour} {
		bubble(t, asks.String(), func(t *testing.T) {
			throttling := false
			h := &hooked{Ledger: memory.New(memory.Options{}), before: func() error {
				if throttling {
					return &store.ThrottledError{RetryAfter: asks}
				}
				return nil
			}}
			w := start(t, setup{ledger: h})
			at(6 * time.Minute)
			throttling = true
			if err := w.StopLeasing(t.Context()); err != nil {
				t.Errorf("StopLeasing: %v", err)
			}
			if ended := time.Since(t0); ended > 10*time.Minute+time.Second {
				t.Errorf("stopped at %v, want it by the end of the slot, 10m", ended)
			}
		})
	}
}

// The same holds for the record that the work is done.
func TestAWorkerThatStopsGivesUpADoneRecordThatIsThrottledForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttling := false
		h := &hooked{Ledger: memory.New(memory.Options{}), before: func() error {
			if throttling {
				return &store.ThrottledError{RetryAfter: time.Hour}
			}
			return nil
		}}
		o := perSlot("a", 0)
		o.WorkerType = "job"
		w := start(t, setup{ledger: h, Options: o, task: func(context.Context, workerlease.Lease) error {
			throttling = true
			return nil
		}})
		at(6 * time.Minute)
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Errorf("StopLeasing: %v", err)
		}
		if ended := time.Since(t0); ended > 10*time.Minute+time.Second {
			t.Errorf("stopped at %v, want it by the end of the slot, 10m", ended)
		}
	})
}

// A worker that has never reached the store doesn't know which slot it is, but how long it
// is.
func TestAWorkerThatCouldNotReachTheStoreYetTriesWithinASlot(t *testing.T) {
	for name, err := range map[string]error{"down": errCut, "throttling": &store.ThrottledError{RetryAfter: time.Hour}} {
		bubble(t, name, func(t *testing.T) {
			h := &hooked{Ledger: memory.New(memory.Options{}), before: func() error {
				if time.Since(t0) < time.Minute {
					return err
				}
				return nil
			}}
			w := start(t, setup{ledger: h, Options: workerlease.Options{LeaseInterval: time.Second}})
			at(65 * time.Second)
			if starts := w.starts(); len(starts) == 0 || starts[0] > 62*time.Second {
				t.Errorf("slots %v, want the first within two slots of 1m", starts)
			}
		})
	}
}
