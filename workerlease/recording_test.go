package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
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

// Work ends while servers answer in turn whose clocks are apart: of its worker only, or of the
// standby, too. That it is done is recorded at once, and not when the time is known: by then the
// standby has begun.
func TestDoneWorkIsRecordedWhileServersAnswerInTurn(t *testing.T) {
	for _, both := range []bool{false, true} {
		for _, within := range []time.Duration{20 * time.Second, time.Minute} {
			for _, apart := range []float64{0.1, 0.3, 0.6, 1} { // of a part
				for _, lasts := range []time.Duration{30 * time.Second, 3 * time.Minute} {
					for _, before := range []time.Duration{0, 5 * time.Second} {
						bubble(t, fmt.Sprint(both, "/", within, "/", apart, "/", lasts, "/", before), func(t *testing.T) {
							const slot, end = 10 * time.Minute, 21 * time.Minute
							inner := memory.New(memory.Options{})
							apart := time.Duration(apart * float64(within))
							var runs atomic.Int64
							for i, name := range []string{"a", "b"} {
								h := inTurn(inner.Handle(), end-before, lasts, apart)
								if i > 0 && !both {
									h.stamp = nil
								}
								o := named(name, i)
								o.LeaseInterval, o.FailoverWithin, o.Job = slot, within, &workerlease.Job{}
								start(t, setup{ledger: h, Options: o, plain: true, task: jobOf(2*slot, end, &runs)})
							}
							at(29 * time.Minute)
							if n := runs.Load(); n != 1 {
								t.Errorf("the work was done %d times, want once", n)
							}
						})
					}
				}
			}
		}
	}
}

// hanging is a ledger that doesn't answer what it is asked in an outage.
type hanging struct {
	store.Ledger
	in func(op string) bool // such an outage
}

func (h *hanging) wait(ctx context.Context, op string) error {
	trip := 5 * time.Millisecond
	if h.in(op) {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(trip):
		return nil
	}
}

func (h *hanging) Append(ctx context.Context, r store.Record) error {
	if err := h.wait(ctx, "append"); err != nil {
		return err
	}
	return h.Ledger.Append(ctx, r)
}

func (h *hanging) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := h.wait(ctx, "read"); err != nil {
		return store.Record{}, err
	}
	return h.Ledger.Get(ctx, workerType, seq)
}

func (h *hanging) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := h.wait(ctx, "read"); err != nil {
		return nil, store.Stamp{}, err
	}
	return h.Ledger.Tail(ctx, workerType, limit)
}

func (h *hanging) Now(ctx context.Context) (store.Stamp, error) {
	if err := h.wait(ctx, "read"); err != nil {
		return store.Stamp{}, err
	}
	return h.Ledger.Now(ctx)
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
		op            string // what hangs; empty: all
		within, lasts time.Duration
	}{
		{"", 10 * time.Second, 30 * time.Second},
		{"", 20 * time.Second, 30 * time.Second},
		{"append", 10 * time.Second, 12 * time.Second},
		{"append", 20 * time.Second, 12 * time.Second},
	} {
		for seed := range uint64(runsOfEach) {
			bubble(t, fmt.Sprint(c.op, "/", c.within, "/", c.lasts, "/", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				end := 11*time.Minute + time.Duration(r.Int64N(int64(10*time.Second)))
				over := end + time.Duration(float64(c.lasts)*(0.7+0.3*r.Float64()))
				inner := memory.New(memory.Options{})
				var runs atomic.Int64
				for _, name := range []string{"a", "b"} {
					l := &hanging{Ledger: inner.Handle(), in: func(op string) bool {
						now := since(time.Now())
						return now >= end-50*time.Millisecond && now < over && (c.op == "" || c.op == op)
					}}
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
