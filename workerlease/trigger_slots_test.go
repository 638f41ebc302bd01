package workerlease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A trigger is given, and then the store can't be reached for a while in which a slot begins. That slot is run first: a run that
// was asked for, and began within it, closed it.
func TestASlotThatBeginsInAnOutageComesBeforeATrigger(t *testing.T) {
	for n := range 40 {
		synctest.Test(t, func(t *testing.T) {
			f := &triggered{t: t, ledger: memory.New(memory.Options{})}
			flaky := faultstore.New(f.ledger, faultstore.Options{Plan: eachCall(faultstore.Fault{After: 3 * time.Millisecond})})
			defer f.stop()
			f.startOn(flaky, []string{"a", "b", "c"}, nil)
			boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
			time.Sleep(time.Until(boundary.Add(-25 * time.Second)))
			f.trigger(0)
			time.Sleep(2 * time.Millisecond)
			flaky.Break(faultstore.Down())
			time.Sleep(25*time.Second + time.Duration(n)*1377*time.Millisecond)
			flaky.Mend()
			time.Sleep(20 * time.Minute)
			asked, slotted := f.all()
			if last := slotted[len(slotted)-1]; len(asked) != 1 || !last.slot.Start.Equal(boundary) {
				t.Errorf("%d: runs that were asked for: %v, and of slots: %v, want one more of %v", n, asked, slotted, boundary)
			}
		})
	}
}

// The run of a slot fails, and its next attempt is due in a while. A worker that began to wait for the next slot meanwhile doesn't run
// for a trigger before the slot has had all its attempts.
func TestATriggerWaitsUntilASlotHasHadItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		f.job = func(_ context.Context, r ran) error {
			if !r.triggered && r.slot.Start.Equal(boundary) {
				time.Sleep(time.Minute)
				return errors.New("no")
			}
			return nil
		}
		job := func(_ int, o *workerlease.Options) { o.Job = &workerlease.Job{MaxAttempts: 3, MinRetry: time.Minute} }
		defer f.stop()
		f.startOn(f.ledger, []string{"a", "b"}, job)
		time.Sleep(time.Until(boundary.Add(10 * time.Second)))
		f.startOn(f.ledger, []string{"c"}, func(i int, o *workerlease.Options) {
			job(i, o)
			o.WaitForBoundary = true
		})
		f.trigger(0)
		time.Sleep(20 * time.Minute)
		asked, slotted := f.all()
		tried := 0
		for _, r := range slotted {
			if r.slot.Start.Equal(boundary) {
				tried++
			}
		}
		if tried != 3 || len(asked) != 1 || asked[0].at.Before(slotted[len(slotted)-1].at) {
			t.Errorf("the slot was tried %d times, want 3, and then a run that was asked for: %v; %v", tried, slotted, asked)
		}
	})
}

// A run that was asked for takes longer than its time and goes on into a slot, at whose beginning its worker hears of another trigger.
// That one is served, though the first is over.
func TestATriggerIsServedThatIsHeardOfInTheRunOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taking(t, 10*time.Minute)
		defer f.stop()
		f.startOn(f.ledger, []string{"a"}, nil)
		time.Sleep(115 * time.Minute)
		f.trigger(time.Minute)
		time.Sleep(2 * time.Minute)
		f.trigger(2 * time.Hour)
		time.Sleep(30 * time.Minute)
		if asked, _ := f.all(); len(asked) != 2 {
			t.Errorf("two triggers have led to the runs %v", asked)
		}
		orders(t, f.ledger, 0)
	})
}

// The lease of a run that was asked for ends in an outage, and its code goes on and succeeds, under the term of the next slot, which
// another worker has. It is recorded once, and the run isn't made again.
func TestARunIsRecordedUnderTheTermOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		f.job = func(_ context.Context, r ran) error {
			switch {
			case r.triggered:
				time.Sleep(5 * time.Minute)
			case r.slot.Start.Equal(boundary):
				time.Sleep(20 * time.Minute)
			}
			return nil
		}
		defer f.stop()
		appends := 0
		link := faultstore.New(f.ledger, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpAppend {
				appends++
			}
			if appends > 200 { // It would go on for ever.
				return faultstore.Down()
			}
			return faultstore.Fault{}
		}})
		f.startOn(link, []string{"a"}, nil)
		f.startOn(f.ledger, []string{"b"}, func(_ int, o *workerlease.Options) { o.Priority = 1 })
		time.Sleep(time.Until(boundary.Add(-time.Minute)))
		f.trigger(2 * time.Hour)
		time.Sleep(30 * time.Second)
		link.Break(faultstore.Down())
		time.Sleep(2 * time.Minute)
		link.Mend()
		time.Sleep(10 * time.Minute)
		said := f.said(func(o store.Outcome) bool {
			return o.InstanceID == "a" && !o.SlotStart.Before(boundary.Add(-time.Minute))
		})
		if said != 1 {
			t.Errorf("%d records say that the run that was asked for is done, want 1", said)
		}
		orders(t, f.ledger, 0)
		time.Sleep(3 * time.Hour)
		asked, slotted := f.all()
		if last := slotted[len(slotted)-1]; len(asked) != 1 || len(slotted) != 6 || asked[0].by != "a" {
			t.Errorf("ran %v for the trigger, want one run, by a; of slots: %d, want 6, up to %v", asked, len(slotted), last)
		}
	})
}

// A worker dies in a run that was asked for, which is tried once, and the next slot begins before others can say so. They don't make
// that run again.
func TestARunIsGivenUpUnderTheTermOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		f.job = func(ctx context.Context, r ran) error {
			switch {
			case r.triggered && r.by == "a":
				<-ctx.Done()
				return ctx.Err()
			case r.slot.Start.Equal(boundary):
				time.Sleep(20 * time.Minute)
			}
			return nil
		}
		defer f.stop()
		link := faultstore.New(f.ledger, faultstore.Options{})
		once := func(_ int, o *workerlease.Options) { o.Job.MaxAttempts = 1 }
		f.startOn(link, []string{"a"}, once)
		f.startOn(f.ledger, []string{"b"}, func(_ int, o *workerlease.Options) { o.Priority, o.Job.MaxAttempts = 1, 1 })
		time.Sleep(time.Until(boundary.Add(-time.Minute)))
		f.trigger(2 * time.Hour)
		time.Sleep(30 * time.Second)
		link.Break(faultstore.Down())
		time.Sleep(90 * time.Minute)
		asked, _ := f.all()
		if len(asked) != 1 {
			t.Errorf("the runs that were asked for are %v, want one, by a", asked)
		}
		orders(t, f.ledger, 0)
	})
}

// noAppends is a ledger whose appends fail while refused is set.
func noAppends(l store.Ledger) (flaky *faultstore.Ledger, refused *atomic.Bool) {
	refused = new(atomic.Bool)
	return faultstore.New(l, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
		if refused.Load() && c.Op == faultstore.OpAppend {
			return faultstore.Fault{Effect: faultstore.Dropped, Err: errors.New("the disk is full")}
		}
		return faultstore.Fault{After: 3 * time.Millisecond}
	}}), refused
}

// Claims for an hour can't be stored for longer than the window that they ask for, and the first record after that is no claim. The
// rest of the slot is claimed: it was given up, by all workers.
func TestASlotIsClaimedThoughAClaimHasOutlivedItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		flaky, refused := noAppends(f.ledger)
		defer f.stop()
		f.startOn(flaky, []string{"a", "b"}, nil)
		boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		time.Sleep(time.Until(boundary.Add(-15 * time.Second)))
		refused.Store(true)
		time.Sleep(75 * time.Second)
		o := operate.Order{WorkerType: "report", Kind: store.OrderPrefer, Target: "a", For: time.Hour, InstanceID: "anna"}
		give(t, f.ledger, o)
		refused.Store(false)
		time.Sleep(2 * time.Minute)
		if _, slotted := f.all(); !slotted[len(slotted)-1].slot.Start.Equal(boundary) {
			t.Errorf("two minutes after a store takes appends again, the last slot that was run is %v, want that of %v", slotted[len(slotted)-1].slot, boundary)
		}
	})
}

// lateTimers is the clock of a machine that is busy: each timer comes a few milliseconds late.
type lateTimers struct {
	clock.Clock
	timers atomic.Int64
}

func (c *lateTimers) AfterFunc(d time.Duration, f func()) *clock.Timer {
	c.timers.Add(1)
	return c.Clock.AfterFunc(d+5*time.Millisecond, f)
}

// Each slot that passes while a run goes on is told, also if the worker notices that only after its end. It doesn't try that
// again and again.
func TestSlotsThatPassInARunAreSkippedOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := &lateTimers{Clock: clock.New()}, 0
		f := &triggered{t: t, ledger: memory.New(memory.Options{}), clock: c, job: func(context.Context, ran) error {
			if n++; n == 2 {
				time.Sleep(5 * time.Hour)
			}
			return nil
		}}
		defer f.stop()
		f.startOn(f.ledger, []string{"a"}, func(_ int, o *workerlease.Options) { o.Job.StartWithin = time.Hour })
		time.Sleep(6*time.Hour + 30*time.Minute)
		if skipped := f.workers[0].Status().Skipped; skipped != 4 || c.timers.Load() > 5000 {
			t.Errorf("a run of 5 h has kept %d hourly slots from beginning, and set %d timers, want 4 and fewer than 5000", skipped, c.timers.Load())
		}
	})
}

// The time in which a run may begin that was asked for is no slot: the next such times aren't skipped, however long it takes.
func TestALongTriggeredRunSkipsNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := taking(t, 20*time.Minute), &lateTimers{Clock: clock.New()}
		f.clock = c
		defer f.stop()
		f.startOn(f.ledger, []string{"a"}, nil)
		time.Sleep(65 * time.Minute)
		f.trigger(time.Minute)
		time.Sleep(25 * time.Minute)
		if s := f.workers[0].Status(); s.Allocated != 3 || s.Skipped != 0 || c.timers.Load() > 2000 {
			t.Errorf("%d runs began, %d slots were skipped, and %d timers set, want 3, none and fewer than 2000", s.Allocated, s.Skipped, c.timers.Load())
		}
	})
}

// A worker that stops waits for the end of a run that was asked for. Its own lease is over, and nothing is left to try meanwhile.
func TestAWorkerThatStopsInATriggeredRunIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := taking(t, 5*time.Minute), &lateTimers{Clock: clock.New()}
		f.clock = c
		link := faultstore.New(f.ledger, faultstore.Options{})
		f.startOn(link, []string{"a"}, nil)
		time.Sleep(119 * time.Minute)
		f.trigger(0)
		time.Sleep(time.Minute)
		link.Break(faultstore.Down())
		before := c.timers.Load()
		f.stop()
		if n := c.timers.Load() - before; n > 5000 {
			t.Errorf("a worker that stops has set %d timers while a run went on, want fewer than 5000", n)
		}
	})
}
