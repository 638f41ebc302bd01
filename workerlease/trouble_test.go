package workerlease_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// A worker of the highest priority whose code fails leaves nine in ten slots to the next one, and has them
// again as soon as its code works.
func TestWhoAlwaysFailsLeavesTheSlotsToOthers(t *testing.T) {
	failing := errors.New("no disk")
	for name, code := range map[string]struct {
		task     workerlease.Task
		progress time.Duration
	}{
		"the task fails":  {func(context.Context, workerlease.Lease) error { return failing }, 0},
		"the task panics": {func(context.Context, workerlease.Lease) error { panic("no disk") }, 0},
		"the task hangs":  {func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return ctx.Err() }, 10 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o, p := named("a", 0), named("b", 1)
			o.LeaseInterval, o.ProgressWithin, p.LeaseInterval = time.Minute, code.progress, time.Minute
			var works atomic.Bool
			var first, second atomic.Int64 // slots of each
			a := runs(t, ledger, o, func(ctx context.Context, l workerlease.Lease) error {
				first.Add(1)
				if !works.Load() {
					return code.task(ctx, l)
				}
				for ctx.Err() == nil {
					l.Progress()
					_ = waits(ctx, time.Second)
				}
				return nil
			})
			runs(t, ledger, p, func(ctx context.Context, _ workerlease.Lease) error {
				second.Add(1)
				<-ctx.Done()
				return nil
			})
			at(401 * time.Minute)
			if n, m := first.Load(), second.Load(); n > 40 || m < 360 || n < 10 {
				t.Errorf("%d slots in the hands of who fails, and %d in those of the other, want less than a tenth", n, m)
			}
			told := observed[event.SteppedBack](a.worker)
			if len(told) == 0 || told[0].Failures != 3 || told[0].Until.Sub(told[0].Slot.End) != time.Minute {
				t.Errorf("events %+v, want that it steps back for one slot after three failures", told)
			}
			works.Store(true)
			at(440 * time.Minute)
			before := second.Load()
			at(480 * time.Minute)
			if n := second.Load() - before; n != 0 {
				t.Errorf("the other has had %d slots since the first works, want none", n)
			}
		})
	}
}

// Alone, it has all slots, since nobody else wants them.
func TestWhoAlwaysFailsAndIsAloneHasAllSlots(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var n atomic.Int64
		o := slotted("a", 3, time.Minute, 0)
		runs(t, memory.New(memory.Options{}), o, func(context.Context, workerlease.Lease) error { n.Add(1); return errUnwell })
		at(60*time.Minute + 30*time.Second)
		if n.Load() != 60 {
			t.Errorf("%d slots in an hour, want 60", n.Load())
		}
	})
}

// Code that keeps its lease and says that its work has failed steps back as if it had returned an error, also if
// the lease goes on from slot to slot.
func TestWhoSaysThatItFailedLeavesTheSlotsToOthers(t *testing.T) {
	for name, continuous := range map[string]bool{"slot by slot": false, "continuous": true} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o, p := named("a", 0), named("b", 1)
			o.LeaseInterval, o.Continuous, p.LeaseInterval = time.Minute, continuous, time.Minute
			var works atomic.Bool
			a := start(t, setup{Options: o, ledger: ledger, work: func(ctx context.Context, l workerlease.Lease) {
				for ctx.Err() == nil {
					if !works.Load() {
						l.Failed()
						l.Failed()
					}
					_ = waits(ctx, time.Minute)
				}
				l.Failed() // The lease has ended: it says nothing.
			}})
			b := start(t, setup{Options: p, ledger: ledger})
			at(401 * time.Minute)
			if n := len(b.history()); n < 355 {
				t.Errorf("the other had %d of 400 slots, want nine in ten", n)
			}
			if n := len(observed[event.SteppedBack](a)); n < 5 || n > 40 {
				t.Errorf("it stepped back %d times", n)
			}
			works.Store(true)
			at(440 * time.Minute)
			before := len(b.history())
			at(460 * time.Minute)
			if n := len(b.history()) - before; n != 0 {
				t.Errorf("the other has had %d slots since the first works, want none", n)
			}
		})
	}
}

func TestWhoAlwaysFailsLeavesTheSlotsToOthersOfItsPriority(t *testing.T) {
	suites.SameGoroutines(t)
	for _, tie := range []priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random} {
		for _, p := range []int{0, 5, priority.Lowest} {
			bubble(t, fmt.Sprint(tie, " ", p), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				o, q := slotted("a", p, time.Minute, 0), slotted("b", p, time.Minute, 0)
				o.TieBreak, q.TieBreak = tie, tie
				var first, second atomic.Int64
				runs(t, ledger, o, func(context.Context, workerlease.Lease) error { first.Add(1); return errUnwell })
				runs(t, ledger, q, func(ctx context.Context, _ workerlease.Lease) error {
					second.Add(1)
					<-ctx.Done()
					return nil
				})
				at(401 * time.Minute)
				if n, m := first.Load(), second.Load(); n > 40 || m < 360 {
					t.Errorf("%d slots in the hands of who fails, and %d in those of the other, want less than a tenth", n, m)
				}
			})
		}
	}
}

// Code that hangs for more than a slot has not gone on through one.
func TestWhoHangsForLongerThanASlotStepsBack(t *testing.T) {
	suites.SameGoroutines(t)
	for _, within := range []time.Duration{0, 8 * time.Second} {
		bubble(t, within.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o, p := named("a", 0), named("b", 1)
			o.LeaseInterval, o.ProgressWithin, p.LeaseInterval = time.Minute, 90*time.Second, time.Minute
			o.Continuous, p.Continuous = true, true
			o.FailoverWithin, p.FailoverWithin = within, within
			start(t, setup{ledger: ledger, Options: o})
			b := start(t, setup{ledger: ledger, Options: p})
			at(800 * time.Minute)
			var worked time.Duration
			for _, u := range b.history() {
				if u.ended > 0 {
					worked += u.ended - u.allocated
				}
			}
			if worked < 700*time.Minute {
				t.Errorf("the other has worked for %v of 800 min, want nine in ten, but for a few at the start", worked)
			}
		})
	}
}

// A favourite that is fit until it leads, as under the load of the work, leaves the slots to others.
func TestWhoIsUnfitWhenItLeadsLeavesTheSlotsToOthers(t *testing.T) {
	for _, failover := range []time.Duration{0, 20 * time.Second} {
		bubble(t, failover.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			var self atomic.Pointer[worker]
			o := parted("favourite", 0, failover)
			o.Eligible = func(context.Context) error {
				if a := self.Load(); a != nil && a.IsHolder() {
					return errUnwell
				}
				return nil
			}
			a := start(t, setup{Options: o, ledger: ledger.Handle()})
			self.Store(a)
			o.Eligible, o.InstanceID, o.Priority = nil, "healthy", 1
			b := start(t, setup{Options: o, ledger: ledger.Handle()})
			at(24 * time.Hour)
			worked := time.Duration(0)
			for _, l := range append(a.history(), b.history()...) {
				worked += cmp.Or(l.ended, 24*time.Hour) - l.allocated
			}
			if share := worked.Hours() / 24; share < 0.91 {
				t.Errorf("the two worked for %.1f %% of a day, want 91 at least", 100*share)
			}
			if n := len(observed[event.SteppedBack](a)); n == 0 {
				t.Error("it did not step back")
			}
		})
	}
}

// failsBy is a task that fails in one of several ways after 8 s.
func failsBy(how string) func(context.Context, workerlease.Lease, int) error {
	return func(ctx context.Context, _ workerlease.Lease, _ int) error {
		time.Sleep(8 * time.Second)
		switch how {
		case "panics":
			panic("bang")
		case "hangs":
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return errWork
	}
}

// led are the options of a leader whose lease goes on.
func led(name, how string) workerlease.Options {
	o := elected(name)
	if how == "hangs" {
		o.ProgressWithin = 9 * time.Second
	}
	return o
}

func TestALeaderThatFailsAloneLeadsAgainAndWaitsLongerEachTime(t *testing.T) {
	for _, how := range []string{"fails", "panics", "hangs"} {
		bubble(t, how, func(t *testing.T) {
			j := &job{do: failsBy(how)}
			start(t, setup{asGiven: true, ledger: memory.New(memory.Options{}).Handle(), Options: led("bad", how), task: j.run})
			at(4*time.Minute + 30*time.Second)
			j.mu.Lock()
			defer j.mu.Unlock()
			if n := len(j.calls); n < 5 || n > 9 {
				t.Fatalf("it was called %d times, want five to nine times: %v", n, j.calls)
			}
			for i, least := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 37 * time.Second} {
				if waited := j.calls[i+1].began - j.calls[i].began - 8*time.Second; waited < least || waited > least+14*time.Second {
					t.Errorf("it waited %v after failure %d, want %v or little more", waited, i+1, least)
				}
			}
		})
	}
}

// It has gone on over a boundary each time, and never through a slot.
func TestALeaderThatFailsAfterABoundaryEachTimeStepsBack(t *testing.T) {
	for _, takes := range []time.Duration{8 * time.Second, 12 * time.Second, 16 * time.Second} {
		bubble(t, takes.String(), func(t *testing.T) {
			o := slotted("bad", 0, 20*time.Second, 4*time.Second)
			o.Continuous = true
			w := runs(t, memory.New(memory.Options{}), o, func(ctx context.Context, _ workerlease.Lease) error {
				_ = waits(ctx, 20*time.Second-time.Since(t0)%(20*time.Second)+takes)
				return errWork
			})
			at(4 * time.Minute)
			if told := observed[event.SteppedBack](w.worker); len(told) == 0 || told[0].Failures != 3 {
				t.Errorf("events %+v, want that it steps back after three slots", told)
			}
		})
	}
}

func TestALeaderThatFailsLeavesTheRestToAnotherThatIsThere(t *testing.T) {
	for _, how := range []string{"fails", "panics", "hangs"} {
		bubble(t, how, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			bad, good := &job{do: failsBy(how)}, &job{do: heeds(time.Hour)}
			start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: led("bad", how), task: bad.run})
			at(4 * time.Second)
			start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: led("good", ""), task: good.run})
			at(4 * time.Minute)
			equal(t, "bad", bad.of(0), "bad")
			equal(t, "good", good.of(0), "good")
			good.mu.Lock()
			defer good.mu.Unlock()
			if began := good.calls[0].began; began > 20*time.Second {
				t.Errorf("the other one leads at %v, want within FailoverWithin", began)
			}
		})
	}
}

// Both fail at once, whoever of them leads: neither comes again at once because the other one was there meanwhile.
func TestTwoLeadersThatFailWaitLongerEachTime(t *testing.T) {
	bubble(t, "two", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: func(context.Context, workerlease.Lease, int) error { return errWork }}
		for n := range 2 {
			start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: led(fmt.Sprint(n), ""), task: j.run})
		}
		at(4*time.Minute + 30*time.Second)
		j.mu.Lock()
		defer j.mu.Unlock()
		if n := len(j.calls); n < 8 || n > 20 {
			t.Errorf("they were called %d times, want again and again, and by and by", n)
		}
	})
}

// Code that waits to try again keeps its lease, and doesn't run.
func TestCodeThatRestsDoesNotRun(t *testing.T) {
	bubble(t, "rest", func(t *testing.T) {
		w := start(t, setup{asGiven: true, ledger: memory.New(memory.Options{}).Handle(), Options: led("a", ""), task: func(ctx context.Context, l workerlease.Lease) error {
			time.Sleep(10 * time.Second)
			l.Rest(func() { time.Sleep(20 * time.Second) })
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		var got []bool
		for range 5 {
			time.Sleep(9 * time.Second)
			got = append(got, w.Status().Running)
			if !w.Status().Holding {
				t.Error("it holds no lease")
			}
		}
		equal(t, "running every 9 s", got, true, false, false, true, true)
	})
}
