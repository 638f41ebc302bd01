package move_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
)

// before is a ledger that does something, once, right before more than so many records are read at once, or, if next is set, before
// it is looked for a record above the newest.
type before struct {
	store.Ledger

	limit int
	next  bool
	once  sync.Once
	do    func()
}

func (l *before) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if limit > l.limit {
		l.once.Do(l.do)
	}
	return l.Ledger.Tail(ctx, workerType, limit)
}

func (l *before) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if newest, _, err := l.Ledger.Tail(ctx, workerType, 1); l.next && err == nil && seq > newest[0].Seq {
		l.once.Do(l.do)
	}
	return l.Ledger.Get(ctx, workerType, seq)
}

// The first store answers late, when the lease has ended, and meanwhile the move was given up, and a worker there has claimed.
func TestAMoveCopiesNoRecordThatGivesItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		slow := &before{Ledger: from.Handle(), limit: 1 << 20, do: func() {
			f.start(t, "new", to.Handle(), 1, workerlease.Options{})
			resume(t, from)
			time.Sleep(2*time.Minute + 10*time.Second)
		}}
		o := mail
		o.Told = func(p move.Progress) { slow.next = p.Step == move.StepWait }
		_, err := move.Move(t.Context(), slow, to, o)
		time.Sleep(3 * time.Minute)
		if !errors.Is(err, move.ErrGivenUp) || pauseIn(t, to) == "" || f.overlapped() {
			t.Errorf("Move() that was given up after its wait = %v, with the pause %q on the second store, two at once: %v; want ErrGivenUp, a pause, and never two", err, pauseIn(t, to), f.overlapped())
		}
	})
}

// The second store answers late, when all was copied, and meanwhile the move was given up, and a worker there has claimed.
func TestAMoveDoesNotLeaveAStoreWhereAClaimHasLandedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		o := mail
		slow := &before{Ledger: to.Handle(), limit: 1 << 20, do: func() {
			resume(t, from)
			time.Sleep(2*time.Minute + 10*time.Second)
		}}
		o.Told = func(p move.Progress) {
			if p.Step == move.StepWait {
				slow.limit = 16 // What is appended to the second store is looked at once more.
			}
		}
		_, err := move.Move(t.Context(), from, slow, o)
		f.start(t, "new", to.Handle(), 1, workerlease.Options{})
		time.Sleep(3 * time.Minute)
		if !errors.Is(err, move.ErrGivenUp) || f.overlapped() {
			t.Errorf("Move() that was given up at its last step = %v, two at once: %v; want ErrGivenUp, and never two", err, f.overlapped())
		}
	})
}

// Another move goes all the way after this one has compared the stores.
func TestAMoveDoesNotBeginWhereAnotherHasJustEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := memory.New(memory.Options{}), memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "a", a.Handle(), 1, workerlease.Options{})
		time.Sleep(2*time.Minute + 10*time.Second)
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepPause {
				moves(t, a, b, mail)
			}
		}
		_, err := move.Move(t.Context(), a, c, o)
		f.start(t, "b", b.Handle(), 1, workerlease.Options{})
		f.start(t, "c", c.Handle(), 1, workerlease.Options{})
		time.Sleep(3 * time.Minute)
		if !errors.Is(err, move.ErrMoved) || f.overlapped() {
			t.Errorf("Move() from a store that was left meanwhile = %v, two at once: %v; want ErrMoved, and never two", err, f.overlapped())
		}
	})
}

// The second store has old records, and a worker there claims after it was compared.
func TestAClaimOnAUsedSecondStoreAfterItWasComparedIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
		(&world{t: t}).plant(&place{l: to}, 1, 3, 48*time.Hour)
		var f fleet
		f.start(t, "old", from.Handle(), 1, workerlease.Options{})
		time.Sleep(2*time.Minute + 50*time.Second)
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepPause {
				f.start(t, "new", to.Handle(), 1, workerlease.Options{})
				time.Sleep(15 * time.Second)
			}
		}
		if _, err := move.Move(t.Context(), from, to, o); !errors.Is(err, move.ErrUsed) || pauseIn(t, from) != "" || pauseIn(t, to) != "" {
			t.Errorf("Move() onto a store where a worker has claimed meanwhile = %v, with the pauses %q and %q, want ErrUsed, and none", err, pauseIn(t, from), pauseIn(t, to))
		}
	})
}

// With Now the holder is told to stop when it reads the pause, and not at the end of its slot.
func TestAMoveAtOnceDoesNotWaitForTheEndOfTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{LeaseInterval: time.Hour, FailoverWithin: 20 * time.Second}, time.Hour+time.Minute)
		o, began := mail, time.Now()
		o.Now = true
		if _, err := move.Move(t.Context(), from, to, o); err != nil || time.Since(began) > time.Minute {
			t.Errorf("Move() at once = %v after %v, want nil within a minute", err, time.Since(began))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.working != 0 {
			t.Errorf("%d work on after the move", f.working)
		}
	})
}

// Nobody holds the lease on the second store, but it is there that the type was last.
func TestNothingIsMovedOntoAStoreWithALargerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
		w := &world{t: t}
		w.plant(&place{l: from}, 1, 5, time.Hour)
		w.plant(&place{l: to}, 1, 5, time.Minute)
		if _, err := move.Move(t.Context(), from, to, mail); !errors.Is(err, move.ErrUsed) || pauseIn(t, from) != "" || pauseIn(t, to) != "" {
			t.Errorf("Move() = %v, with the pauses %q and %q, want ErrUsed and none", err, pauseIn(t, from), pauseIn(t, to))
		}
	})
}

// A member of the holder's group that is started on the second store doesn't join the lease that was copied there: if the move is
// given up, or the second clock is behind, it would work on beside the next holder on the first store.
func TestAGroupDoesNotJoinACopiedLeaseWhileTheTypeArrives(t *testing.T) {
	for _, now := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), -50*time.Second)})
			var f fleet
			f.start(t, "east", from.Handle(), 1, workerlease.Options{Group: "east", Priority: 1})
			time.Sleep(2*time.Minute + 15*time.Second)
			f.start(t, "west", from.Handle(), 1, workerlease.Options{Group: "west"})
			o, begun := mail, false
			o.Now = now
			o.Told = func(p move.Progress) {
				if p.Step != move.StepWait || begun {
					return
				}
				begun = true
				f.start(t, "new", to.Handle(), 1, workerlease.Options{Group: "east"})
				time.Sleep(time.Second)
				resume(t, from)
			}
			if _, err := move.Move(t.Context(), from, to, o); !errors.Is(err, move.ErrGivenUp) {
				t.Errorf("Move() = %v, want ErrGivenUp", err)
			}
			time.Sleep(3 * time.Minute)
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, x := range f.turns {
				if x.store == "new" {
					t.Errorf("the second store's worker worked in %v from %v to %v, want that it doesn't", x.slot, x.began, x.ended)
				}
			}
		})
	}
}
