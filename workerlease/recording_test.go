package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// jobOf is a task that is to be run in one slot only. Its first run ends at a time, all others at once.
func jobOf(slot, end time.Duration, runs *atomic.Int64) workerlease.Task {
	return func(_ context.Context, l workerlease.Lease) error {
		if since(l.Slot.Start) == slot && runs.Add(1) == 1 {
			time.Sleep(end - since(time.Now()))
		}
		return nil
	}
}

// Work ends in an outage in which the store doesn't answer. What hangs is given up while a standby
// still waits for the record, and hardly any work is done twice.
func TestWorkIsHardlyEverDoneTwiceAfterAnOutageInWhichTheStoreHangs(t *testing.T) {
	if race.Enabled {
		t.Skip("takes seconds under the race detector, and differs in bounds only")
	}
	const runsOfEach = 30
	all, twice := 0, 0
	for _, c := range []struct {
		op            faultstore.Op // what hangs; empty: all
		within, lasts time.Duration
	}{
		{"", 10 * time.Second, 30 * time.Second},
		{"", 20 * time.Second, 30 * time.Second},
		{faultstore.OpAppend, 10 * time.Second, 12 * time.Second},
		{faultstore.OpAppend, 20 * time.Second, 12 * time.Second},
	} {
		for seed := range uint64(runsOfEach) {
			bubble(t, fmt.Sprint(c.op, "/", c.within, "/", c.lasts, "/", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				end := 11*time.Minute + time.Duration(r.Int64N(int64(10*time.Second)))
				over := end + time.Duration(float64(c.lasts)*(0.7+0.3*r.Float64()))
				inner := memory.New(memory.Options{})
				var runs atomic.Int64
				for _, name := range []string{"a", "b"} {
					l := struck(t, inner.Handle(), func(call faultstore.Call) faultstore.Fault {
						if now := since(call.At); now >= end-50*time.Millisecond && now < over && (c.op == "" || c.op == call.Op) {
							return faultstore.BlackHole(faultstore.Dropped)
						}
						return faultstore.Fault{Before: 5 * time.Millisecond}
					})
					o := named(name, 0)
					o.FailoverWithin, o.Job = c.within, &workerlease.Job{}
					start(t, setup{ledger: l, Options: o, plain: true, task: jobOf(10*time.Minute, end, &runs)})
				}
				at(14*time.Minute + 50*time.Second)
				if all++; runs.Load() > 1 {
					twice++
				}
				if last := newest(t, inner); since(last.DoneUntil) != 15*time.Minute {
					t.Errorf("done up to %v, want 15m", since(last.DoneUntil))
				}
			})
		}
	}
	t.Logf("%d of %d done twice", twice, all)
	if most := all / 12; twice > most {
		t.Errorf("%d of %d done twice, want %d at most", twice, all, most)
	}
}

// The store is down, and a worker stops that has work to record as done. It tries as often as others
// do, however short the parts of its slot are.
func TestAWorkerThatStopsInAnOutageAsksSeldomForWorkToBeRecorded(t *testing.T) {
	for _, within := range []time.Duration{0, 500 * time.Millisecond, time.Second, 4 * time.Second, time.Minute} {
		bubble(t, fmt.Sprint(within), func(t *testing.T) {
			const slot = 12 * time.Hour
			var operations atomic.Int64
			var down atomic.Bool
			h := &hooked{Ledger: memory.New(memory.Options{})}
			h.before = func() error {
				operations.Add(1)
				if down.Load() {
					return errors.New("down")
				}
				return nil
			}
			o := named("a", 0)
			o.LeaseInterval, o.FailoverWithin, o.Margin, o.Job = slot, within, 10*time.Millisecond, &workerlease.Job{}
			w := start(t, setup{ledger: h, Options: o, plain: true, task: func(ctx context.Context, _ workerlease.Lease) error {
				<-ctx.Done()
				return nil
			}})
			at(slot + 10*time.Minute)
			down.Store(true)
			operations.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := w.StopLeasing(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("StopLeasing() = %v, want it to try for all of 10 min", err)
			}
			if n := operations.Load(); n < 10 || n > 2*600 {
				t.Errorf("%d operations in 10 min, want 10 at least, and 2 a second at most", n)
			}
		})
	}
}

// A store is as slow as a worker can bear that extends its lease. What is done is recorded: an operation
// that takes as long as those before it isn't given up.
func TestDoneWorkIsRecordedOnASlowStore(t *testing.T) {
	for _, within := range []time.Duration{4 * time.Second, 10 * time.Second} {
		for _, part := range []float64{0.45, 0.55, 0.7} { // of the time in which a lease is extended
			for _, readsToo := range []bool{false, true} {
				bubble(t, fmt.Sprint(within, "/", part, "/", readsToo), func(t *testing.T) {
					const slot = 2 * time.Minute
					inner := memory.New(memory.Options{})
					runs := make([]atomic.Int64, 20)
					for i, name := range []string{"a", "b"} {
						l := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
							if c.Op != faultstore.OpAppend && !readsToo {
								return faultstore.Fault{}
							}
							return faultstore.Fault{Before: time.Duration(part * float64(within/4))}
						})
						o := named(name, i)
						o.LeaseInterval, o.FailoverWithin, o.Job = slot, within, &workerlease.Job{}
						start(t, setup{ledger: l, Options: o, plain: true, task: func(ctx context.Context, l workerlease.Lease) error {
							n := int(since(l.Slot.Start) / slot)
							runs[n].Add(1)
							return waits(ctx, 7*within/2+time.Duration(n*274)*time.Millisecond)
						}})
					}
					at(39 * time.Minute)
					for n := 1; n < 19; n++ {
						if got := runs[n].Load(); got != 1 {
							t.Errorf("the work of slot %d was done %d times, want once", n, got)
						}
					}
					if last := newest(t, inner); since(last.DoneUntil) < 38*time.Minute {
						t.Errorf("done up to %v, want 38m at least", since(last.DoneUntil))
					}
				})
			}
		}
	}
}

// After an outage in which the store's clock has jumped, too, a standby still waits for the record of
// another whose connection comes back a little later. That the jump is settled doesn't end the wait.
func TestAStandbyWaitsForADoneRecordAlsoAfterAJump(t *testing.T) {
	seeds := uint64(20)
	if race.Enabled {
		seeds = 4
	}
	for _, within := range []time.Duration{2 * time.Minute, 5 * time.Minute} {
		for _, jump := range []time.Duration{-20 * time.Second, -3 * time.Second, 500 * time.Millisecond} {
			for seed := range seeds {
				bubble(t, fmt.Sprint(within, "/", jump, "/", seed), func(t *testing.T) {
					const slot, the = 30 * time.Minute, 4 * time.Hour
					r := rand.New(rand.NewPCG(seed, 7))
					end := the + 5*time.Minute + time.Duration(r.Int64N(int64(within)))
					over := end + time.Duration(float64(within)*(0.7+0.3*r.Float64()))
					later := time.Duration(float64(within/4) * (0.2 + 0.7*r.Float64()))
					inner := memory.New(memory.Options{})
					var runs atomic.Int64
					var first atomic.Value
					for i, name := range []string{"b", "a"} {
						at(time.Duration(i) * (2*slot + 5*time.Minute)) // The standby has led before.
						h := &hooked{Ledger: inner.Handle()}
						h.stamp = func(s *store.Stamp, _ time.Time) {
							if since(time.Now()) >= end {
								s.Time = s.Time.Add(jump)
							}
						}
						h.before = func() error {
							until := over
							if first.Load() == name {
								until += later
							}
							if now := since(time.Now()); now >= end-50*time.Millisecond && now < until {
								return errors.New("down")
							}
							return nil
						}
						l := struck(t, h, eachCall(faultstore.Fault{Before: 5 * time.Millisecond}))
						o := named(name, 1-i)
						o.LeaseInterval, o.FailoverWithin, o.Job = slot, within, &workerlease.Job{}
						start(t, setup{ledger: l, Options: o, plain: true, task: func(ctx context.Context, l workerlease.Lease) error {
							if since(l.Slot.Start) == the {
								first.CompareAndSwap(nil, name)
							}
							return jobOf(the, end, &runs)(ctx, l)
						}})
					}
					at(the + slot - 30*time.Second)
					if n := runs.Load(); n != 1 {
						t.Errorf("the work was done %d times, want once", n)
					}
				})
			}
		}
	}
}

// Work is to be recorded, the head is poison, and servers answer in turn: the worker has to wait.
func TestAWorkerThatCanNotRecordItsWorkForPoisonSleeps(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const slot, end = 10 * time.Minute, 21 * time.Minute
		inner := memory.New(memory.Options{})
		o := named("a", 0)
		o.LeaseInterval, o.Job = slot, &workerlease.Job{}
		c := &lateTimers{Clock: clock.New()}
		var runs atomic.Int64
		start(t, setup{
			ledger: inTurn(inner.Handle(), end-20*time.Second, 10*time.Minute, 2*time.Minute, 1),
			clock:  c, Options: o, plain: true, task: jobOf(2*slot, end, &runs),
		})
		at(end - 5*time.Second)
		inner.Put(garbage(newest(t, inner)))
		at(end + 10*time.Second)
		c.timers.Store(0)
		at(end + 5*time.Minute)
		if n := c.timers.Load(); n < 5 || n > 1000 {
			t.Errorf("%d timers in 5 min, want 5 to 1,000", n)
		}
	})
}
