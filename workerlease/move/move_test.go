package move_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// turn is one run of the task.
type turn struct {
	store string
	slot  slots.Slot
	token int64
	// When it began and ended.
	began, ended time.Time
}

// fleet are workers of one type on two stores, and what they have done.
type fleet struct {
	mu      sync.Mutex
	turns   []turn
	working int
	twice   bool
}

// start starts workers on a store.
func (f *fleet) start(t *testing.T, name string, l store.Ledger, workers int, o workerlease.Options) {
	t.Helper()
	for i := range workers {
		o := o
		o.WorkerType, o.InstanceID = "mail", fmt.Sprint(name, i)
		if o.LeaseInterval == 0 {
			o.LeaseInterval = time.Minute
		}
		c := workerlease.NewClient(l, workerlease.ClientOptions{Clock: clock.New()})
		w, err := c.StartTask(t.Context(), o, func(ctx context.Context, l workerlease.Lease) error {
			f.mu.Lock()
			f.working++
			f.twice = f.twice || f.working > 1
			n := len(f.turns)
			f.turns = append(f.turns, turn{store: name, slot: l.Slot, token: l.Token, began: time.Now()})
			f.mu.Unlock()
			defer func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.working--
				f.turns[n].ended = time.Now()
			}()
			if o.Job != nil {
				time.Sleep(5 * time.Second)
				return ctx.Err()
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		must(t, err)
		t.Cleanup(func() { _ = w.StopLeasing(context.Background()) })
	}
}

// leased is a fleet of workers on the first of two stores, for so long.
func leased(t *testing.T, workers int, o workerlease.Options, lasts time.Duration) (f *fleet, from, to *memory.Ledger) {
	t.Helper()
	f, from, to = &fleet{}, memory.New(memory.Options{}), memory.New(memory.Options{})
	f.start(t, "old", from.Handle(), workers, o)
	time.Sleep(lasts)
	return f, from, to
}

// must ends the test if something went wrong.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moves moves a worker type.
func moves(t *testing.T, from, to store.Ledger, o move.Options) {
	t.Helper()
	_, err := move.Move(t.Context(), from, to, o)
	must(t, err)
}

// resume ends the pause of a store.
func resume(t *testing.T, l store.Ledger) {
	t.Helper()
	_, err := operate.On(l).End(t.Context(), operate.Order{WorkerType: "mail"})
	must(t, err)
}

// bubble is a subtest in a bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// check demands that nobody worked at once, no slot was worked on both stores, and tokens grew; and that work on the
// second store went on within so many slots.
func (f *fleet) check(t *testing.T, within int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.twice {
		t.Error("two worked at once")
	}
	var last turn
	moved := false
	for _, x := range f.turns {
		if x.token <= last.token {
			t.Errorf("token %d of %s after %d of %s, want it to grow", x.token, x.store, last.token, last.store)
		}
		if x.store != last.store && last.store != "" {
			if moved || x.slot.Start.Before(last.slot.End) {
				t.Errorf("slot %v on %s after %v on %s", x.slot, x.store, last.slot, last.store)
			}
			if gap := x.began.Sub(last.ended); gap > time.Duration(within)*last.slot.Length() {
				t.Errorf("%v passed between the turns in %v and %v, want %d slots at most", gap, last.slot, x.slot, within)
			}
			moved = true
		}
		last = x
	}
	if !moved || last.store != "new" {
		t.Errorf("turns = %v, want those of the first store, and then those of the second", f.turns)
	}
}

func TestATypeIsMovedUnderLoadWithoutTwoHolders(t *testing.T) {
	for name, o := range map[string]workerlease.Options{
		"leases":            {},
		"continuous leases": {Continuous: true},
		"failover":          {FailoverWithin: 20 * time.Second, WaitForBoundary: true},
		"a job":             {Job: &workerlease.Job{}},
	} {
		for _, now := range []bool{false, true} {
			for _, early := range []bool{false, true} {
				bubble(t, fmt.Sprintf("%s, now %v, workers there before %v", name, now, early), func(t *testing.T) {
					f, from, to := leased(t, 3, o, 5*time.Minute+20*time.Second)
					var steps []move.Step
					started := false
					r, err := move.Move(t.Context(), from, to, move.Options{WorkerType: "mail", Now: now, Reason: "a test", Told: func(p move.Progress) {
						if len(steps) == 0 || steps[len(steps)-1] != p.Step {
							steps = append(steps, p.Step)
						}
						if early && p.Step == move.StepWait && len(steps) == 3 {
							early = false
							f.start(t, "new", to.Handle(), 2, o)
							started = true
						}
					}})
					if err != nil || r.Copied < 3 || r.Head.Orders == "" {
						t.Fatalf("Move() = %+v, %v, want nil", r, err)
					}
					if got := fmt.Sprint(steps); got != "[pause copy wait resume history done]" && got != "[pause copy resume history done]" {
						t.Errorf("steps = %v", got)
					}
					if !started {
						f.start(t, "new", to.Handle(), 2, o)
					}
					time.Sleep(10 * time.Minute)
					f.check(t, 3)
					wantMoved(t, from, to)
				})
			}
		}
	}
}

// wantMoved demands that the first store is paused and the second isn't, and that the second has what is done.
func wantMoved(t *testing.T, from, to store.Ledger) {
	t.Helper()
	old, _, _ := from.Tail(t.Context(), "mail", 1)
	fresh, stamp, _ := to.Tail(t.Context(), "mail", 1)
	if len(old[0].OrdersAt(stamp.Time)) != 1 || len(fresh[0].OrdersAt(stamp.Time)) != 0 {
		t.Errorf("orders on the first store: %q, on the second: %q, want a pause and none", old[0].Orders, fresh[0].Orders)
	}
	if fresh[0].DoneUntil.Before(old[0].DoneUntil) || fresh[0].Token < old[0].Token {
		t.Errorf("the newest record on the second store is done until %v with token %d, on the first %v, %d", fresh[0].DoneUntil, fresh[0].Token, old[0].DoneUntil, old[0].Token)
	}
}

func TestNoSlotIsHadOnBothStoresWhateverTheirClocksSay(t *testing.T) {
	for _, ahead := range []time.Duration{-50 * time.Second, -7 * time.Second, 7 * time.Second, 50 * time.Second} {
		bubble(t, fmt.Sprint(ahead), func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), ahead)})
			var f fleet
			f.start(t, "old", from.Handle(), 3, workerlease.Options{})
			time.Sleep(5*time.Minute + 20*time.Second)
			r, err := move.Move(t.Context(), from, to, move.Options{WorkerType: "mail", Now: true})
			if err != nil || (r.Apart-ahead).Abs() > time.Second {
				t.Fatalf("Move() = clocks %v apart, %v, want %v and nil", r.Apart, err, ahead)
			}
			f.start(t, "new", to.Handle(), 2, workerlease.Options{})
			time.Sleep(10 * time.Minute)
			f.check(t, 3)
		})
	}
}

func TestAMoveGoesOnWhereOneWasBrokenOff(t *testing.T) {
	// Each operation on either store fails once, with its reply lost or before it had an effect.
	for n := range 60 {
		for _, lost := range []bool{false, true} {
			bubble(t, fmt.Sprintf("operation %d, reply lost %v", n, lost), func(t *testing.T) {
				f, from, to := leased(t, 2, workerlease.Options{}, 3*time.Minute+30*time.Second)
				failing := &breaking{n: n, lost: lost}
				o := move.Options{WorkerType: "mail", Now: true, History: 3}
				_, err := move.Move(t.Context(), failing.wrap(from.Handle()), failing.wrap(to.Handle()), o)
				if err != nil {
					time.Sleep(7 * time.Second)
					_, err = move.Move(t.Context(), from, to, o)
				}
				if err != nil {
					t.Fatalf("Move(), once more = %v, want nil", err)
				}
				f.start(t, "new", to.Handle(), 2, workerlease.Options{})
				time.Sleep(5 * time.Minute)
				f.check(t, 4)
				wantMoved(t, from, to)
				if _, err := move.Move(t.Context(), to, from, o); err != nil || pauseIn(t, from) != "" {
					t.Errorf("Move() back = %v, with the pause %q, want nil and none", err, pauseIn(t, from))
				}
			})
		}
	}
}

// breaking lets the nth operation on some ledgers fail, and all after it.
type breaking struct {
	mu   sync.Mutex
	n    int
	lost bool
}

var errBroken = errors.New("broken off")

// strikes reports whether an operation fails, and whether it has an effect all the same.
func (b *breaking) strikes() (fails, acts bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n--
	return b.n < 0, b.n == -1 && b.lost
}

func (b *breaking) wrap(l store.Ledger) store.Ledger { return &broken{l, b} }

type broken struct {
	store.Ledger
	*breaking
}

func (b *broken) Append(ctx context.Context, r store.Record) error {
	fails, acts := b.strikes()
	if !fails || acts {
		if err := b.Ledger.Append(ctx, r); err != nil || !fails {
			return err
		}
	}
	return errBroken
}

func (b *broken) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if fails, _ := b.strikes(); fails {
		return store.Record{}, errBroken
	}
	return b.Ledger.Get(ctx, workerType, seq)
}

func (b *broken) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if fails, _ := b.strikes(); fails {
		return nil, store.Stamp{}, errBroken
	}
	return b.Ledger.Tail(ctx, workerType, limit)
}

func TestWhatCannotBeMovedIsRefusedAndNothingIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		some := func() *memory.Ledger {
			l := memory.New(memory.Options{})
			var f fleet
			f.start(t, "old", l.Handle(), 1, workerlease.Options{})
			time.Sleep(2 * time.Minute)
			return l
		}
		used, ahead := some(), memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), 2*time.Minute)})
		from := some()
		poisoned := some()
		poisoned.Put(store.Record{WorkerType: "mail", Seq: 1000, Kind: store.KindGrant})
		for name, c := range map[string]struct {
			from, to store.Ledger
			o        move.Options
			want     error
		}{
			"an empty ledger":         {memory.New(memory.Options{}), memory.New(memory.Options{}), move.Options{WorkerType: "mail"}, move.ErrNothing},
			"onto a ledger in use":    {from, used, move.Options{WorkerType: "mail"}, move.ErrUsed},
			"onto another clock":      {from, ahead, move.Options{WorkerType: "mail"}, move.ErrApart},
			"below a record of sorts": {poisoned, memory.New(memory.Options{}), move.Options{WorkerType: "mail"}, operate.ErrUnfitHead},
			"bad options":             {from, nil, move.Options{WorkerType: "a b", History: -1}, move.ErrOptions},
		} {
			if _, err := move.Move(t.Context(), c.from, c.to, c.o); !errors.Is(err, c.want) {
				t.Errorf("Move() of %s = %v, want %v", name, err, c.want)
			}
			for _, l := range []store.Ledger{c.from, c.to} {
				if l == nil {
					continue
				}
				if records, stamp, _ := l.Tail(t.Context(), "mail", 1); len(records) > 0 && len(records[0].OrdersAt(stamp.Time)) > 0 {
					t.Errorf("after a Move() of %s that was refused there is an order", name)
				}
			}
		}
	})
}

func TestAMoveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from, to := leased(t, 1, workerlease.Options{LeaseInterval: time.Hour}, time.Hour+time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := move.Move(ctx, from, to, move.Options{WorkerType: "mail"})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("Move() while somebody holds the lease = %v after %v, want DeadlineExceeded after 1m", err, took)
		}
		if records, _, _ := to.Tail(t.Context(), "mail", 9); len(records) != 2 || records[0].Kind != store.KindOrder {
			t.Errorf("the second store has %+v, want the pause of the first, and what is below", records)
		}
	})
}
