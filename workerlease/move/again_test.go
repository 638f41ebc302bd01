package move_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// mail are the options of moves of the fleet's worker type.
var mail = move.Options{WorkerType: "mail", Reason: "a test"}

// pauseIn is the pause in force in the newest record of a ledger; empty if there is none.
func pauseIn(t *testing.T, l store.Ledger) string {
	t.Helper()
	records, stamp, err := l.Tail(t.Context(), "mail", 1)
	must(t, err)
	for _, r := range records {
		for _, o := range r.OrdersAt(stamp.Time) {
			if o.Kind == store.OrderPause {
				return o.String()
			}
		}
	}
	return ""
}

func (f *fleet) overlapped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.twice
}

func TestARepeatedMoveDoesNotResumeAStoreThatWasMovedOnFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := memory.New(memory.Options{}), memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "a", a.Handle(), 1, workerlease.Options{})
		time.Sleep(2*time.Minute + 10*time.Second)
		for _, step := range [][2]*memory.Ledger{{a, b}, {b, c}} {
			moves(t, step[0], step[1], mail)
		}
		f.start(t, "b", b.Handle(), 1, workerlease.Options{})
		f.start(t, "c", c.Handle(), 1, workerlease.Options{})
		time.Sleep(2 * time.Minute)
		_, err := move.Move(t.Context(), a, b, mail)
		time.Sleep(3 * time.Minute)
		if f.overlapped() {
			t.Error("two worked at once after the first move was repeated")
		}
		if !errors.Is(err, move.ErrPaused) || pauseIn(t, b) == "" {
			t.Errorf("the first move, repeated = %v, with the pause %q on its second store, want ErrPaused and that of the second move", err, pauseIn(t, b))
		}
	})
}

func TestAMoveEndsNoPauseOfAnOperator(t *testing.T) {
	pause := func(t *testing.T, l store.Ledger) {
		t.Helper()
		_, err := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderPause, WorkerType: "mail", For: time.Hour, Reason: "repairs"})
		must(t, err)
	}
	for name, c := range map[string]struct {
		before, after bool // when the operator pauses
		back          bool // it is moved back
	}{"before it is moved": {before: true}, "after it was moved": {after: true}, "and it is moved back": {after: true, back: true}} {
		bubble(t, name, func(t *testing.T) {
			_, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute)
			paused := from
			if c.before {
				pause(t, from)
			}
			if c.after {
				moves(t, from, to, mail)
				pause(t, to)
				paused = to
			}
			source, target := from, to
			if c.back {
				source, target = to, from
			}
			_, err := move.Move(t.Context(), source, target, mail)
			if got := pauseIn(t, paused); !errors.Is(err, move.ErrPaused) || !strings.Contains(got, "repairs") {
				t.Errorf("Move() = %v, and the pause is %q, want ErrPaused, and that of the operator", err, got)
			}
		})
	}
}

func TestAMoveThatIsGivenUpLeavesTheSecondStorePaused(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, l store.Ledger) error{
		"by resume": func(ctx context.Context, l store.Ledger) error {
			_, err := operate.On(l).End(ctx, operate.Order{WorkerType: "mail"})
			return err
		},
		"by a pause that is shorter": func(ctx context.Context, l store.Ledger) error {
			_, err := operate.On(l).Give(ctx, operate.Order{Kind: store.OrderPause, WorkerType: "mail", For: time.Second})
			return err
		},
	} {
		bubble(t, name, func(t *testing.T) {
			f, from, to := leased(t, 2, workerlease.Options{}, 2*time.Minute+10*time.Second)
			o := mail
			var ended atomic.Bool
			o.Told = func(p move.Progress) {
				if p.Step == move.StepWait && !ended.Swap(true) {
					f.start(t, "new", to.Handle(), 2, workerlease.Options{})
					if err := end(t.Context(), from); err != nil {
						t.Error(err)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err := move.Move(ctx, from, to, o)
			time.Sleep(5 * time.Minute)
			if !errors.Is(err, move.ErrGivenUp) || pauseIn(t, to) == "" || f.overlapped() {
				t.Errorf("Move() that is given up = %v, with the pause %q on the second store, two at once: %v; want ErrGivenUp, a pause, and never two", err, pauseIn(t, to), f.overlapped())
			}
		})
	}
}

// late is a ledger to which records of a kind and of one slot are appended late: all, or so many.
type late struct {
	store.Ledger

	kind store.Kind
	slot int // that begins at so many minutes
	by   time.Duration
	most int64
	n    atomic.Int64
}

func (l *late) Append(ctx context.Context, r store.Record) error {
	if r.Kind == l.kind && r.SlotStart.Minute() == l.slot && (l.most == 0 || l.n.Add(1) <= l.most) {
		time.Sleep(l.by)
	}
	return l.Ledger.Append(ctx, r)
}

// A worker of the second store has looked at its ledger before the pause was there, and appends afterwards.
func TestAClaimOnTheSecondStoreWhileItIsPausedIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+50*time.Second)
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepPause {
				f.start(t, "new", to.Handle(), 1, workerlease.Options{})
				time.Sleep(9 * time.Second)
			}
		}
		_, err := move.Move(t.Context(), from, to, o)
		if own, _ := to.Get(t.Context(), "mail", 1); own.InstanceID != "new0" {
			t.Fatalf("record 1 on the second store is of %q, want one of its own", own.InstanceID)
		}
		if !errors.Is(err, move.ErrUsed) || pauseIn(t, from) != "" || pauseIn(t, to) != "" {
			t.Errorf("Move() onto a store where a worker has claimed meanwhile = %v, with the pauses %q and %q, want ErrUsed, and none", err, pauseIn(t, from), pauseIn(t, to))
		}
	})
}

func TestAClaimThatComesLateOnTheSecondStoreIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+50*time.Second)
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepPause {
				f.start(t, "new", &late{Ledger: to.Handle(), kind: store.KindGrant, slot: 3, by: 5 * time.Second}, 1, workerlease.Options{})
				time.Sleep(6 * time.Second)
			}
		}
		moves(t, from, to, o)
		time.Sleep(3 * time.Minute)
		f.check(t, 3)
	})
}

func TestWhatIsDoneIsMovedThoughItWasRecordedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "old", &late{Ledger: from.Handle(), kind: store.KindDone, slot: 2, by: 12 * time.Second, most: 1}, 1, workerlease.Options{Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest}})
		time.Sleep(2*time.Minute + 10*time.Second)
		moves(t, from, to, mail)
		f.start(t, "new", to.Handle(), 1, workerlease.Options{Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest}})
		time.Sleep(5 * time.Minute)
		f.check(t, 3)
		wantMoved(t, from, to)
	})
}

func TestATypeThatHasLeftAStoreIsNotMovedFromThereOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := memory.New(memory.Options{}), memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "a", a.Handle(), 2, workerlease.Options{})
		time.Sleep(2*time.Minute + 10*time.Second)
		// A move to c broke off, so that c has copies of the newest records: it isn't where the type went, all the same.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := move.Move(ctx, a, c, mail); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Move() to c = %v, want that it waits", err)
		}
		moves(t, a, b, mail)
		f.start(t, "b", b.Handle(), 1, workerlease.Options{})
		f.start(t, "c", c.Handle(), 1, workerlease.Options{})
		time.Sleep(2 * time.Minute)
		for name, to := range map[string]*memory.Ledger{"c": c, "an empty store": memory.New(memory.Options{})} {
			if _, err := move.Move(t.Context(), a, to, mail); !errors.Is(err, move.ErrMoved) {
				t.Errorf("Move() from a to %s after a move to b = %v, want ErrMoved", name, err)
			}
		}
		if _, err := move.Move(t.Context(), a, b, mail); err != nil {
			t.Errorf("Move() to b, once more = %v, want nil", err)
		}
		time.Sleep(3 * time.Minute)
		if f.overlapped() {
			t.Error("two worked at once")
		}
		if pause := pauseIn(t, a); !strings.Contains(pause, "it was moved to another store: a test") {
			t.Errorf("the pause on a is %q, want that it says where from", pause)
		}
		if _, err := move.Move(t.Context(), b, a, mail); err != nil {
			t.Errorf("Move() back to a = %v, want nil", err)
		}
		time.Sleep(3 * time.Minute)
		if f.overlapped() || pauseIn(t, a) != "" {
			t.Errorf("after a move back two worked at once: %v, and a has the pause %q", f.overlapped(), pauseIn(t, a))
		}
	})
}

func TestAStoreIsNotMovedOntoItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Options{})
		var f fleet
		f.start(t, "a", l.Handle(), 1, workerlease.Options{})
		time.Sleep(2 * time.Minute)
		if _, err := move.Move(t.Context(), l.Handle(), l.Handle(), mail); !errors.Is(err, move.ErrOptions) || pauseIn(t, l) != "" {
			t.Errorf("Move() onto the same store = %v, with the pause %q, want ErrOptions and none", err, pauseIn(t, l))
		}
	})
}
