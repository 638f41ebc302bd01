package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Code that has worked through slots is remembered for nothing.
func TestAWorkerThatHasWorkedIsRememberedForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("a", 0)
		o.LeaseInterval, o.Continuous = time.Minute, true
		life(t, ledger, o, time.Second, 20*time.Minute)
		time.Sleep(5 * time.Second)
		a := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true})
		time.Sleep(10*time.Minute + 20*time.Second)
		must(t, a.StopLeasing(t.Context()))
		if all := present(t, ledger); len(all) != 0 {
			t.Errorf("it has worked for ten slots, and leaves %+v", all)
		}
	})
}

// A policy that ends its goroutine, as FailNow of a test does, counts as one that panics.
func TestAPolicyThatEndsItsGoroutineEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		exits := func(store.Presence, []store.Presence) (int, string) { runtime.Goexit(); return 0, "" }
		a := start(t, setup{Options: region("a", "eu", exits), ledger: ledger.Handle(), roster: true})
		at(5*time.Minute + 30*time.Second)
		if p := ofInstance(present(t, ledger), "a"); p.Phase != store.PhaseHolder || a.Status().Effective != 1 {
			t.Errorf("it claims by %d, and says %+v", a.Status().Effective, p)
		}
		began := time.Now()
		a.stop(t)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("stopping took %v", took)
		}
	})
}

// What was there before counts even if the worker fails before it knows that.
func TestAWorkerThatFailsBeforeItRemembersRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o, left, _ := failedForHalfAnHour(t, ledger)
		time.Sleep(20 * time.Minute) // It needn't step back any more.
		s := spy(ledger)
		s.fails = store.ErrDenied
		start(t, setup{Options: o, ledger: s, roster: true, task: failsAtOnce})
		time.Sleep(90 * time.Second)
		s.set(func() { s.fails = nil })
		time.Sleep(30 * time.Second)
		if p := ofInstance(present(t, ledger), "a"); p.Failures <= left.Failures {
			t.Errorf("it had failed %d times, failed again, and says %d", left.Failures, p.Failures)
		}
	})
}

// A policy that changes its mind all the time costs no slot.
func TestAPolicyThatChangesItsMindCostsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		n := 0
		flips := func(store.Presence, []store.Presence) (int, string) { n++; return n % 2 * 7, fmt.Sprint(n) }
		o := region("a", "eu", flips)
		o.LeaseInterval = 4 * time.Second
		a := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true})
		at(202 * time.Second)
		if got := len(a.starts()); got != 50 {
			t.Errorf("it had %d slots of 50, n=%d", got, n)
		}
	})
}

// Clients may share an InstanceID. One that comes takes what the others say for what was there before, and
// removes it; they say it again.
func TestClientsThatShareAnInstanceIDStayInTheRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const types = 16
		ledger := memory.New(memory.Options{})
		f := newFleet(ledger, func(o *workerlease.Options) { o.TieBreak, o.InstanceID = priority.Spread, "api" })
		for i := range 4 {
			f.join(t, i, types, ledger.Handle())
			time.Sleep(5 * time.Second)
		}
		at(2*time.Minute + 30*time.Second)
		f.even(t, types, "two slots after the start")
		at(4*time.Minute + 33*time.Second)
		f.join(t, 4, types, ledger.Handle())
		for _, when := range []time.Duration{5, 6, 7} {
			at(when*time.Minute + 2*time.Second)
			if when > 5 {
				f.even(t, types, fmt.Sprintf("after %d min", when))
			}
			if n := len(present(t, ledger)); n != 5*types {
				t.Errorf("after %d min the roster has %d presences, want %d", when, n, 5*types)
			}
		}
	})
}

// What was there before doesn't count for a worker whose code has worked before it knows that.
func TestAWorkerThatWorksBeforeItRemembersRemembersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o, _, _ := failedForHalfAnHour(t, ledger)
		s := spy(ledger)
		s.fails = store.ErrDenied
		b := start(t, setup{Options: o, ledger: s, roster: true, task: func(context.Context, workerlease.Lease) error { return nil }})
		time.Sleep(3 * time.Minute)
		s.set(func() { s.fails = nil })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if p := ofInstance(present(t, ledger), "a"); b.Status().Effective != 0 || p.Failures != 0 || p.Phase == store.PhaseStepping {
			t.Errorf("it has worked in three slots, claims by %d, and says %+v", b.Status().Effective, p)
		}
	})
}

// Workers that come and go at any time leave nothing, and no goroutine.
func TestWorkersThatComeAndGoLeaveNothingInTheRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		c := workerlease.NewClient(ledger, workerlease.ClientOptions{Roster: true})
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				for n := range 20 {
					o := slotted(fmt.Sprint(i), 0, time.Minute, 0)
					w, err := c.StartLeasing(t.Context(), o, workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() }})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Duration(i*n%7) * 50 * time.Millisecond)
					if err := w.StopLeasing(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		synctest.Wait()
		if all := present(t, ledger); len(all) != 0 {
			t.Errorf("%d presences are left", len(all))
		}
	})
}

// When all workers have ended, a roster that hangs keeps the client's goroutine for little longer.
func TestARosterThatHangsIsLeftSoonAfterTheLastWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &left{spied: spy(memory.New(memory.Options{}))}
		c := workerlease.NewClient(s, workerlease.ClientOptions{Roster: true})
		var all []*worker
		for i := range 8 {
			o := named("a", 0)
			o.WorkerType, o.LeaseInterval = fmt.Sprint("job-", i), time.Minute
			all = append(all, start(t, setup{Options: o, client: c, task: func(context.Context, workerlease.Lease) error {
				if i%2 == 0 {
					return errors.New("no disk")
				}
				return nil
			}}))
		}
		at(5*time.Minute + 30*time.Second)
		s.set(func() { s.hangs = true })
		var group sync.WaitGroup
		for _, w := range all {
			group.Go(func() { _ = w.StopLeasing(t.Context()) })
		}
		group.Wait()
		ended := time.Now()
		time.Sleep(time.Minute)
		if last := s.last.Load().(time.Time); last.Sub(ended) > time.Second {
			t.Errorf("an operation on the roster has ended %v after the last worker", last.Sub(ended))
		}
	})
}

// left is a ledger that notes when the newest change of its roster ended.
type left struct {
	*spied
	last atomic.Value
}

func (l *left) Leave(ctx context.Context, workerType string, ids []string) error {
	defer func() { l.last.Store(time.Now()) }()
	return l.spied.Leave(ctx, workerType, ids)
}

func (l *left) Attend(ctx context.Context, presences []store.Presence) error {
	defer func() { l.last.Store(time.Now()) }()
	return l.spied.Attend(ctx, presences)
}

// A policy that doesn't return stops neither the roster of its client nor its own worker.
func TestAPolicyThatBlocksStopsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		block := make(chan struct{})
		var blocks atomic.Bool
		o := slotted("a", 3, time.Minute, 0)
		o.Policy = func(store.Presence, []store.Presence) (int, string) {
			if blocks.Load() {
				<-block
			}
			return 1, "well"
		}
		a := start(t, setup{ledger: ledger, Options: o, roster: true})
		o.Policy, o.WorkerType = nil, "other"
		start(t, setup{client: a.Client(), Options: o})
		show := func(when time.Duration, effective int, why string) {
			t.Helper()
			at(when)
			all, err := a.Client().Candidates(t.Context(), "")
			if err != nil || len(all) != 2 {
				t.Fatalf("Candidates() = %v, %v", all, err)
			}
			for _, c := range all {
				if c.WorkerType == "job" && (c.Effective != effective || c.Why != why) || !c.Present {
					t.Errorf("at %v: %s has priority %d: %s; present: %v; want %d: %s", when, c.WorkerType, c.Effective, c.Why, c.Present, effective, why)
				}
			}
		}
		show(10*time.Minute, 1, "well")
		at(11 * time.Minute)
		blocks.Store(true)
		show(40*time.Minute, 3, "its policy has not returned")
		if e := observed[event.Stuck](a); len(e) != 1 || e[0].In != "Options.Policy" || e[0].Took != time.Second || len(a.errs) != 1 {
			t.Errorf("events %+v, errors %v, want one of a second", e, a.errs)
		}
		if n := len(a.history()); n < 39 {
			t.Errorf("%d leases in 40 min, want all", n)
		}
		blocks.Store(false)
		close(block)
		show(42*time.Minute, 1, "well")
	})
}

// readable is a roster that may be read, and not written.
type readable struct{ *memory.Ledger }

func (readable) Attend(context.Context, []store.Presence) error { return store.ErrDenied }

// Workers that are ranked read the roster before they write it.
func TestARosterThatMayNotBeWrittenIsToldAtOnce(t *testing.T) {
	for _, spread := range []bool{false, true} {
		for _, every := range []time.Duration{10 * time.Second, 24 * time.Hour} {
			bubble(t, fmt.Sprint(every, spread), func(t *testing.T) {
				o := named("a", 0)
				if o.LeaseInterval = every; spread {
					o.TieBreak = priority.Spread
				}
				a := start(t, setup{Options: o, ledger: readable{memory.New(memory.Options{})}, roster: true})
				at(3 * time.Minute)
				if n := len(observed[event.RosterFailed](a)); n != 1 {
					t.Errorf("it is told %d times within minutes, want once", n)
				}
			})
		}
	}
}
