package workerlease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// hinting gives hints at times since the bubble began.
func hinting(times ...time.Duration) func(context.Context, func(string)) error {
	return func(ctx context.Context, changed func(string)) error {
		for _, d := range times {
			select {
			case <-time.After(d - time.Since(t0)):
				changed("")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// A look that fails must not make the worker late for its next slot.
func TestAttackALookThatFailsDelaysNoClaim(t *testing.T) {
	for _, most := range []time.Duration{0, 30 * time.Second} {
		var late [2]time.Duration
		for i, hints := range [][]time.Duration{{}, {6 * time.Minute}} {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				holder := faultstore.New(inner.Handle(), faultstore.Options{})
				waiting := faultstore.New(inner.Handle(), faultstore.Options{})
				start(t, setup{ledger: struct{ store.Ledger }{holder}, Options: leading("first", 0, 0)})
				o := leading("second", 1, 0)
				o.MaxBackoff = most
				var wins time.Duration
				counted := &hooked{Ledger: waiting, afterAppend: func(r store.Record) {
					if wins == 0 && r.InstanceID == "second" {
						wins = time.Since(t0)
					}
				}}
				start(t, setup{ledger: watcher{counted, hinting(hints...)}, Options: o})
				at(6*time.Minute - time.Second)
				holder.Break(faultstore.Down())
				waiting.Break(faultstore.Down())
				at(9*time.Minute + 49*time.Second + 900*time.Millisecond)
				waiting.Mend() // Before claims open.
				at(11 * time.Minute)
				late[i] = wins
			})
		}
		if late[1] > late[0]+time.Second {
			t.Errorf("MaxBackoff %v: claimed at %v with a hint, at %v without", most, late[1], late[0])
		}
	}
}

// The same for a take-over.
func TestAttackALookThatFailsDelaysNoTakeOver(t *testing.T) {
	var late [2]time.Duration
	for i, hints := range [][]time.Duration{{}, {6*time.Minute + 0*time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			holder := faultstore.New(inner.Handle(), faultstore.Options{})
			waiting := faultstore.New(inner.Handle(), faultstore.Options{})
			start(t, setup{ledger: struct{ store.Ledger }{holder}, Options: leading("first", 0, 2*time.Minute)})
			second := start(t, setup{ledger: watcher{waiting, hinting(hints...)}, Options: leading("second", 1, 2*time.Minute)})
			at(6*time.Minute - time.Second)
			end := since(records(t, inner)[len(records(t, inner))-1].WindowEnd)
			holder.Break(faultstore.Down())
			waiting.Break(faultstore.Down())
			at(end - 100*time.Millisecond)
			waiting.Mend()
			at(9 * time.Minute)
			late[i] = second.turn(t, 0).allocated - end
		})
	}
	if late[1] > late[0]+50*time.Millisecond {
		t.Errorf("taken over %v after the end with a hint, %v without", late[1], late[0])
	}
}

// A hint must not make a worker forget that the store had failed: it waits for a record that work is done.
func TestAttackAHintDoesNotMakeDoneWorkRunAgain(t *testing.T) {
	for _, hint := range []bool{false, true} {
		t.Run(fmt.Sprint(hint), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				holder := faultstore.New(inner.Handle(), faultstore.Options{})
				waiting := faultstore.New(inner.Handle(), faultstore.Options{})
				job := func(name string, priority int) workerlease.Options {
					o := named(name, priority)
					o.FailoverWithin, o.Job = 2*time.Minute, &workerlease.Job{}
					return o
				}
				runs := 0
				done := make(chan struct{})
				start(t, setup{ledger: struct{ store.Ledger }{holder}, Options: job("first", 0), task: func(ctx context.Context, _ workerlease.Lease) error {
					runs++
					<-done
					return nil
				}})
				var changed func(string)
				start(t, setup{ledger: watcher{waiting, func(ctx context.Context, f func(string)) error {
					changed = f
					<-ctx.Done()
					return ctx.Err()
				}}, Options: job("second", 1), task: func(context.Context, workerlease.Lease) error {
					runs++
					return nil
				}})
				newest := func() time.Duration { r := records(t, inner); return since(r[len(r)-1].WindowEnd) }
				at(5*time.Minute + time.Second)
				first := newest()
				at(first - time.Second)
				if newest() == first {
					t.Fatal("not extended")
				}
				waiting.Break(faultstore.Down()) // The store fails for two seconds.
				at(first + 4*time.Second)
				waiting.Mend()
				at(first + 10*time.Second)
				holder.Break(faultstore.Down())
				second := newest()
				if hint {
					changed("")
				}
				at(second - time.Second)
				close(done)
				at(second + 5*time.Second)
				holder.Mend()
				at(9 * time.Minute)
				for _, r := range records(t, inner) {
					t.Log(r.Kind, r.InstanceID, since(r.WindowStart), since(r.WindowEnd), r.Attempt, since(r.DoneUntil))
				}
				t.Log(first, second)
				if runs != 1 {
					t.Errorf("ran %d times, want once", runs)
				}
			})
		})
	}
}

// Hints must cost nothing but looks: not a step of the worker each.
type drawing struct{ n atomic.Int64 }

func (c *drawing) Read(b []byte) (int, error) {
	c.n.Add(1)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return len(b), nil
}

func TestAttackManyHintsCostFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		start(t, setup{ledger: inner.Handle(), Options: leading("first", 0, 0)})
		at(6 * time.Minute)
		rand := &drawing{}
		hints := 0
		client := workerlease.NewClient(watcher{inner.Handle(), func(ctx context.Context, changed func(string)) error {
			for ctx.Err() == nil {
				hints++
				changed("")
				time.Sleep(20 * time.Millisecond)
			}
			return ctx.Err()
		}}, workerlease.ClientOptions{Rand: rand})
		start(t, setup{client: client, Options: leading("second", 1, 0)})
		at(11 * time.Minute)
		rand.n.Store(0)
		hints = 0
		at(12 * time.Minute)
		if n := rand.n.Load(); n > 200 {
			t.Errorf("%d steps for %d hints in a minute", n, hints)
		}
	})
}

func TestAttackAWorkerThatIsNeverStoppedInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		if _, err := client.StartTask(context.Background(), workerlease.Options{WorkerType: "job", Job: &workerlease.Job{}}, func(context.Context, workerlease.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Minute)
		synctest.Wait()
	})
}
