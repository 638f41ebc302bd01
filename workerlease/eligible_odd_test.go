package workerlease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Code that rests needs no progress, nor may it be late when it is called again.
func TestCodeThatRestedIsNotLateWithItsProgress(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		o := named("a", 0)
		o.LeaseInterval, o.Continuous, o.ProgressWithin = time.Minute, true, 10*time.Second
		var calls, done atomic.Int64
		a := runs(t, memory.New(memory.Options{}), o, func(ctx context.Context, _ workerlease.Lease) error {
			calls.Add(1)
			select {
			case <-time.After(5 * time.Second):
				done.Add(1)
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		at(5*time.Minute + 30*time.Second)
		if calls.Load() != 5 || done.Load() != 5 {
			t.Errorf("%d calls, of which %d went well, want 5", calls.Load(), done.Load())
		}
		for _, e := range observed[event.Expired](a.worker) {
			t.Errorf("%+v", e)
		}
	})
}

// Its newest answer counts until then, whenever the next one is due.
func TestASlowCheckDelaysNoClaim(t *testing.T) {
	for shift := time.Duration(0); shift < 3*time.Second; shift += 500 * time.Millisecond {
		bubble(t, shift.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o, p := slotted("a", 0, time.Minute, 0), slotted("b", 1, time.Minute, 0)
			o.EligibleEvery, o.EligibleTimeout = 5*time.Second+shift, 4*time.Second
			o.Eligible = func(context.Context) error { time.Sleep(3 * time.Second); return nil }
			a := start(t, setup{ledger: ledger, Options: o})
			b := start(t, setup{ledger: ledger, Options: p})
			at(20*time.Minute + 30*time.Second)
			if n, m := len(a.history()), len(b.history()); n != 20 || m != 0 {
				t.Errorf("%d slots, and %d of the lower priority, want 20 and 0", n, m)
			}
		})
	}
}

// It was won, and can't be given back since the store is down.
func TestASlotThatAnIneligibleWorkerCannotGiveBackIsMissedBecauseOfThat(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		_, link := cut(t)
		var sick health
		a := start(t, setup{ledger: link, Options: sick.options("a", 0)})
		at(57 * time.Second)
		sick.bad.Store(true)
		link.Break(faultstore.Down())
		at(130 * time.Second)
		missed := observed[event.Missed](a)
		if len(missed) != 1 || missed[0].Why != workerlease.Ineligible {
			t.Errorf("missed %+v, want one slot, because it isn't eligible", missed)
		}
		link.Mend()
	})
}

// A check that hangs hides neither that a lease isn't released, nor that one is.
func TestStoppingWhileTheCheckHangs(t *testing.T) {
	for name, down := range map[string]bool{"the store answers": false, "the store is down": true} {
		bubble(t, name, func(t *testing.T) {
			var hangs atomic.Bool
			end := make(chan struct{})
			_, link := cut(t)
			o := named("a", 0)
			o.WorkerType, o.LeaseInterval = "job", time.Minute
			o.EligibleEvery, o.EligibleTimeout = 2*time.Second, 2*time.Second
			o.Eligible = func(context.Context) error {
				if hangs.Load() {
					<-end
				}
				return nil
			}
			client := workerlease.NewClient(link, workerlease.ClientOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- client.Run(ctx, o, func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return nil })
			}()
			at(66 * time.Second)
			hangs.Store(true)
			at(69 * time.Second)
			if down {
				link.Break(faultstore.Down())
			}
			cancel()
			at(90 * time.Second)
			err := <-done
			if err == nil || errors.Is(err, workerlease.ErrNotReleased) != down || strings.Contains(err.Error(), "store did not answer") != down {
				t.Errorf("Run() = %v", err)
			}
			close(end)
			at(100 * time.Second)
		})
	}
}
