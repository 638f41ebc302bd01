package move_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// An order on the second store, given while a move waits for the holder, is no end of the move; and it comes along.
func TestAMoveThatIsRepeatedWaitsForTheHolderWhateverWasOrdered(t *testing.T) {
	for _, again := range []bool{true, false} { // In mid-move there is no second one.
		synctest.Test(t, func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
			o := workerlease.Options{FailoverWithin: 20 * time.Second}
			var f fleet
			f.start(t, "old", from.Handle(), 2, o)
			time.Sleep(2*time.Minute + 2*time.Second)
			ordered := mail
			ordered.Told = func(p move.Progress) {
				if p.Step == move.StepWait && len(ordersIn(t, to)) == 0 {
					prefer(t, to, "new0", time.Hour)
					f.start(t, "new", to.Handle(), 1, o)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if again {
				ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
			}
			_, err := move.Move(ctx, from, to, ordered)
			if again {
				_, err = move.Move(t.Context(), from, to, mail)
			}
			time.Sleep(3 * time.Minute)
			if err != nil || !slices.Equal(ordersIn(t, to), []string{"prefer new0"}) {
				t.Errorf("Move() with an order in between, again %v = %v, with the orders %q, want nil and the preference", again, err, ordersIn(t, to))
			}
			f.check(t, 3)
		})
	}
}

func TestOfTwoMovesAtOnceTheLaterGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := memory.New(memory.Options{}), memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "old", a.Handle(), 1, workerlease.Options{})
		time.Sleep(2*time.Minute + 10*time.Second)
		first := make(chan error)
		go func() {
			_, err := move.Move(t.Context(), a, b, mail)
			first <- err
		}()
		time.Sleep(10 * time.Second)
		go func() {
			if err := <-first; !errors.Is(err, move.ErrMoved) {
				t.Errorf("the first of two moves = %v, want ErrMoved", err)
			}
		}()
		if _, err := move.Move(t.Context(), a, c, mail); err != nil {
			t.Errorf("the second of two moves = %v, want nil", err)
		}
		f.start(t, "b", b.Handle(), 1, workerlease.Options{})
		f.start(t, "new", c.Handle(), 1, workerlease.Options{})
		time.Sleep(5 * time.Minute)
		f.check(t, 3)
	})
}

// Each store refuses that its pause is ended, or replaced, by mistake: the one that was left, and the one where a move is to arrive.
func TestThePauseOfAMoveIsNotEndedByMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		refused := func(when string, l store.Ledger) {
			t.Helper()
			_, resumed := operate.On(l).End(t.Context(), operate.Order{WorkerType: "mail"})
			_, paused := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderPause, WorkerType: "mail", For: time.Second})
			for _, err := range []error{resumed, paused} {
				if !errors.Is(err, operate.ErrPausedByMove) || !strings.Contains(err.Error(), "don't resume it here") {
					t.Errorf("%s: Resume() and Pause() = %v, %v, want ErrPausedByMove", when, resumed, paused)
				}
			}
		}
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepWait {
				refused("on the second store, in mid-move", to)
			}
		}
		moves(t, from, to, o)
		refused("on the first store, after it", from)
		if _, err := operate.On(from).End(t.Context(), operate.Order{WorkerType: "mail", RiskTwoHolders: true}); err != nil || pauseIn(t, from) != "" {
			t.Errorf("Resume() that risks two holders = %v, with the pause %q, want nil and none", err, pauseIn(t, from))
		}
	})
}

// trimmed gives a ledger records of a day ago, whose first was trimmed.
func trimmed(t *testing.T, l *memory.Ledger) {
	t.Helper()
	w := &world{t: t}
	w.plant(&place{l: l}, 885, 120, 24*time.Hour)
}

func TestAClaimThatComesLateIsLostThoughTheFirstLedgerWasTrimmed(t *testing.T) {
	for _, used := range []bool{false, true} { // The second store has records of its own.
		synctest.Test(t, func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
			trimmed(t, from)
			if used {
				(&world{t: t}).plant(&place{l: to}, 1, 3, 48*time.Hour)
			}
			var f fleet
			f.start(t, "old", from.Handle(), 1, workerlease.Options{})
			time.Sleep(2*time.Minute + 50*time.Second)
			// The claim for the slot at 3 is decided when the second store isn't paused, and lands when all is over.
			f.start(t, "new", &late{Ledger: to.Handle(), kind: store.KindGrant, slot: 3, by: 15 * time.Second}, 1, workerlease.Options{})
			time.Sleep(8 * time.Second)
			moves(t, from, to, mail)
			// Nor does a trim free its key.
			if n, err := operate.On(to).Trim(t.Context(), "mail", workerlease.MinRetention); n > 3 || err != nil {
				t.Errorf("Trim() of the second store = %d, %v, want no more than what it had before", n, err)
			}
			time.Sleep(4 * time.Minute)
			f.check(t, 3)
		})
	}
}

// noResume refuses what ends a pause, as a store that fails right then.
type noResume struct{ store.Ledger }

func (l noResume) Append(ctx context.Context, r store.Record) error {
	if o, is := r.Order(); is && o.Removes() {
		return errBroken
	}
	return l.Ledger.Append(ctx, r)
}

func TestAMoveThatBrokeOffAtItsEndIsEndedWhateverWasOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		if _, err := move.Move(t.Context(), from, noResume{to}, mail); !errors.Is(err, errBroken) {
			t.Fatalf("Move() = %v, want that it breaks off", err)
		}
		for _, l := range []store.Ledger{from, to, to} {
			prefer(t, l, "new0", time.Hour)
			drain(t, l, "web-1", time.Hour)
		}
		r, err := move.Move(t.Context(), from, to, mail)
		if err != nil || r.Resumed.Seq == 0 || len(ordersIn(t, to)) != 2 {
			t.Errorf("Move(), once more = %+v, %v, with the orders %q; want that it resumes, and both orders", r, err, ordersIn(t, to))
		}
		f.start(t, "new", to.Handle(), 1, workerlease.Options{})
		time.Sleep(3 * time.Minute)
		f.check(t, 4)
	})
}

// Before it has left the first store, too, and whatever was ordered on the second meanwhile comes along.
func TestAMoveThatBrokeOffWhileItWaitedIsEndedWhateverWasOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		o := mail
		o.Told = func(p move.Progress) {
			if p.Step == move.StepWait {
				prefer(t, to, "new0", time.Hour)
				drain(t, to, "web-1", time.Hour)
				_, err := operate.On(to).Give(t.Context(), operate.Order{Kind: store.OrderTrigger, WorkerType: "mail", For: time.Hour})
				must(t, err)
				cancel()
			}
		}
		if _, err := move.Move(ctx, from, to, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("Move() = %v, want that it is cancelled", err)
		}
		r, err := move.Move(t.Context(), from, to, mail)
		if err != nil || r.Resumed.Seq == 0 || len(ordersIn(t, to)) != 3 {
			t.Errorf("Move(), once more = %+v, %v, with the orders %q; want that it resumes, and all three orders", r, err, ordersIn(t, to))
		}
	})
}

// A holder whose lease an operator ended by force may work on until it notices: a move waits for that.
func TestAMoveWaitsForALeaseThatWasOverridden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
		head, _, _ := from.Tail(t.Context(), "mail", 1)
		if _, err := operate.On(from).Override(t.Context(), operate.OverrideOptions{WorkerType: "mail", Seq: head[0].Seq}); err != nil {
			t.Fatal(err)
		}
		moves(t, from, to, mail)
		f.start(t, "new", to.Handle(), 1, workerlease.Options{})
		time.Sleep(3 * time.Minute)
		f.check(t, 3)
	})
}

func TestAMovedLedgerIsSound(t *testing.T) {
	for _, begin := range []func(t *testing.T, l *memory.Ledger){trimmed, func(t *testing.T, l *memory.Ledger) {
		t.Helper()
		prefer(t, l, "a", time.Hour)
	}, func(*testing.T, *memory.Ledger) {}} {
		synctest.Test(t, func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
			begin(t, from)
			var f fleet
			f.start(t, "old", from.Handle(), 2, workerlease.Options{FailoverWithin: 20 * time.Second})
			time.Sleep(3*time.Minute + 10*time.Second)
			moves(t, from, to, mail)
			f.start(t, "new", to.Handle(), 2, workerlease.Options{FailoverWithin: 20 * time.Second})
			time.Sleep(3 * time.Minute)
			for _, found := range findings(t, to) {
				t.Errorf("the second ledger: %+v, want no fault", found)
			}
		})
	}
}
