package workerlease_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// Whatever keeps the done record out of the ledger, Done must not return nil. Here the newest record is poison, so that
// surrender drops what was to be recorded.
func TestCompleteSaysIfNothingWasRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		at(5*time.Minute + time.Second)
		claim := claimed(t, ledger.Handle(), perSlot("a", 0))
		time.Sleep(time.Second)
		ledger.Put(store.Record{WorkerType: "job", Seq: newest(t, ledger).Seq + 1, Defect: "not a record"})
		if err := claim.Complete(t.Context()); err == nil {
			t.Error("Done = nil, and the head of the ledger is poison: nothing was recorded")
		}
	})
}

// The first slot of a ledger is done; the read before the done record is stale, and makes the ledger look empty. So
// closeSlot takes the ledger for lost, and forgets for good what is to be recorded.
func TestADoneSlotIsRecordedAfterAStaleRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		var stale atomic.Bool
		link := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpTail && stale.CompareAndSwap(true, false) {
				return faultstore.StaleRead(1)
			}
			return faultstore.Fault{}
		})
		runs(t, link, perSlot("a", 0), func(context.Context, workerlease.Lease) error {
			time.Sleep(time.Second)
			stale.Store(true)
			return nil
		})
		at(9 * time.Minute)
		if done := newest(t, inner).DoneUntil; done.IsZero() {
			t.Error("4 min after the task has returned, no done record is in the ledger")
		}
	})
}

// Two workers of one priority, Sticky by default: the holder of the slot before goes first. With a Job it doesn't,
// since target compares the end of the last window with the start of the slot, and the last window of a task that is
// done early ends before. So for Rotate.
func TestTieBreakAppliesToTasksThatAreDoneEarly(t *testing.T) {
	for _, tie := range []priority.TieBreak{priority.Sticky, priority.Rotate} {
		bubble(t, fmt.Sprint(tie), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Second}
			for _, name := range []string{"a", "b"} {
				o := perSlot(name, 0)
				o.TieBreak = tie
				runs(t, ledger.Handle(), o, j.run)
			}
			at(104 * time.Minute)
			var who []string
			same := 0
			for m := 5; m < 100; m += 5 {
				who = append(who, j.of(time.Duration(m)*time.Minute)...)
				if n := len(who); n > 1 && who[n-1] == who[n-2] {
					same++
				}
			}
			if tie == priority.Sticky && same != len(who)-1 || tie == priority.Rotate && same != 0 {
				t.Errorf("%v: %v", tie, who)
			}
		})
	}
}

// A leader's task fails 5 s before the end of its slot, when the lease has been extended over the next one already. "What
// is left of the slot is released; this worker goes on with the next": it releases the next one, too, and leaves it out.
// Nobody else is there.
func TestATaskOfALeaderThatFailsInTheLastLeadGoesOnWithTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: func(ctx context.Context, l workerlease.Lease, attempt int) error {
			if since(l.Slot.Start) == 10*time.Minute && attempt == 1 {
				time.Sleep(4*time.Minute + 55*time.Second)
				return errWork
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		o := named("a", 0)
		o.Continuous = true
		at(10*time.Minute + time.Millisecond)
		runsAtOnce(t, ledger, o, j.run)
		at(19 * time.Minute)
		if who := j.of(15 * time.Minute); len(who) == 0 {
			t.Errorf("nobody was called for the slot of 15m; calls: %+v", j.calls)
		}
	})
}

// The end of a claim's context woke Claim.end, which gave the worker up after 10 s. So Done and Release, which may wait
// for a minute, returned nil although the store was away and nothing was in the ledger.
func TestTheEndOfAClaimWaitsAsLongAsItsContextSays(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(*workerlease.Claim, context.Context) error
		recorded func(store.Record) bool
	}{
		"Complete": {(*workerlease.Claim).Complete, func(r store.Record) bool { return !r.DoneUntil.IsZero() }},
		"Release":  {(*workerlease.Claim).Release, func(r store.Record) bool { return r.Kind == store.KindRelease }},
	} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			at(5*time.Minute + time.Second)
			claim := claimed(t, link, perSlot("a", 0))
			link.Break(faultstore.Down())
			time.AfterFunc(12*time.Second, link.Mend)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.end(claim, ctx)
			if r := newest(t, inner); err != nil || !c.recorded(r) {
				t.Errorf("%s = %v after %v, and the newest record is %+v", name, err, time.Since(t0)-5*time.Minute-time.Second, r)
			}
		})
	}
}

// A leader's machine is suspended for a minute in mid-slot, and wakes while the lease is still good. The worker notices
// within a second, and extends the lease in time; but Run waits for the next slot with one timer, which has slept: the
// task is called for the next slot a minute late.
func TestTheNextSlotOfALeadersTaskBeginsInTimeAfterASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := clocks.NewSuspendable(clock.New())
		ledger := memory.New(memory.Options{Clock: machine.Outside()})
		j := &job{}
		o := named("a", 0)
		o.Continuous = true
		w := start(t, setup{ledger: ledger, clock: machine, Options: o, task: j.run})
		at(6 * time.Minute)
		machine.Suspend(time.Minute) // The store says 7m.
		at(9*time.Minute + 5*time.Second)
		if who := j.of(10 * time.Minute); len(who) != 1 {
			status := w.Status()
			t.Errorf("5 s into the slot of 10m: calls for it: %v; holding: %v, for the slot of %v", who, status.Holding, since(status.Lease.Slot.Start))
		}
	})
}

// The call for a missed slot ends its goroutine (as t.FailNow does). That is an error, and made up for; but it ends the
// goroutine that would have called the task for the slot itself, too. The lease is held, and extended, to the end of the
// slot, with nobody at work, and nobody else tries.
func TestALateCallThatEndsItsGoroutineDoesNotCostTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		j := &job{do: func(_ context.Context, l workerlease.Lease, _ int) error {
			if since(l.Slot.Start) == 10*time.Minute {
				runtime.Goexit()
			}
			return nil
		}}
		o := perSlot("a", 0)
		o.Job.CatchUp = workerlease.CatchUpNewest
		runs(t, link, o, j.run)
		at(9 * time.Minute)
		link.Break(faultstore.Down())
		at(14*time.Minute + 58*time.Second)
		link.Mend()
		at(19 * time.Minute)
		if late, who := j.of(10*time.Minute), j.of(15*time.Minute); len(late) == 1 && len(who) == 0 {
			t.Errorf("4 min into the slot of 15m nobody was called for it; the lease ends %v", since(newest(t, inner).WindowEnd))
		}
	})
}

// counting counts the steps of workers: each draws once.
type counting struct{ steps atomic.Int64 }

func (c *counting) Read(b []byte) (int, error) {
	c.steps.Add(1)
	return rand.Read(b)
}

// A task returns nil after the end of its slot, while its worker stops, and the done record can't be appended for 20 s.
// The worker has to wait for the backoff; but it waits for the end of the slot, too, which has passed: it wakes up each
// millisecond.
func TestRecordingADoneSlotAfterItsEndDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		link := struck(t, memory.New(memory.Options{}), func(c faultstore.Call) faultstore.Fault {
			if down.Load() && c.Op == faultstore.OpAppend {
				return faultstore.Failure()
			}
			return faultstore.Fault{}
		})
		count := &counting{}
		client := workerlease.NewClient(link, workerlease.ClientOptions{Rand: count})
		w := start(t, setup{client: client, Options: perSlot("a", 0), task: (&job{each: 6 * time.Minute}).run})
		at(9 * time.Minute)
		go func() { _ = w.StopLeasing(context.Background()) }()
		at(10*time.Minute + 30*time.Second)
		down.Store(true)
		before := count.steps.Load()
		at(11*time.Minute + 20*time.Second) // The task returned at 11m.
		if n := count.steps.Load() - before; n > 1000 {
			t.Errorf("%d steps in 20 s of a store that refuses appends", n)
		}
		down.Store(false)
		<-w.Done()
	})
}

// The store's clock goes back by almost 5 min right after a slot has begun. The lease ends; the task does its work all the same,
// and returns nil. By the middle of what store time may be then, the slot has not begun: it must be recorded that this slot
// is done, and not the one before, or else it is run again when the clock gets there.
func TestWhatIsDoneWhenTheClockHasJumpedBackIsTheSlotThatWasRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, link := cut(t)
		j := &job{do: func(ctx context.Context, l workerlease.Lease, attempt int) error {
			if since(l.Slot.Start) == 10*time.Minute && attempt == 1 {
				link.Shift(-290*time.Second, "")
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, workerlease.ErrClockJumped) {
					t.Errorf("cause = %v at %v, want that the clock has jumped", cause, time.Since(t0))
				}
			}
			time.Sleep(5 * time.Second)
			return nil
		}}
		runs(t, link, perSlot("a", 0), j.run)
		at(25 * time.Minute)
		j.once(t, 10*time.Minute)
	})
}

// Somebody planted a done record until 2099, with a valid envelope. No worker can have written that: slots last 366 days
// at most. It was taken for no poison, nothing was reported, all records repeated it, and nobody worked any more. Once
// that was not obeyed, the record that a slot is done, appended after it,
// repeats 2099 in place of the end of the slot (done takes the later of the two), so that it isn't obeyed either,
// and the slot is run again.
func TestASlotIsDoneAlsoAfterADoneUntilThatIsNotObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: func(_ context.Context, l workerlease.Lease, _ int) error {
			if since(l.Slot.Start) == 10*time.Minute {
				ledger.Put(doneBy(newest(t, ledger), t0.AddDate(99, 0, 0)))
			}
			return nil
		}}
		runs(t, ledger.Handle(), perSlot("a", 0), j.run)
		runs(t, ledger.Handle(), perSlot("b", 1), j.run)
		at(3 * time.Hour)
		j.once(t, 10*time.Minute)
		j.once(t, 15*time.Minute)
		j.once(t, 3*time.Hour-5*time.Minute)
	})
}
