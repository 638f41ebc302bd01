package workerlease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A done record may come after the grant of the worker that takes over, which has to wait
// until its window has surely begun. It looks once more before it begins.
func TestNobodyBeginsAgainOnceDoneIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		h := &hooked{Ledger: ledger.Handle()}
		// The store's time is uncertain: between the grant and the beginning lies a second.
		h.stamp = func(s *store.Stamp, _ time.Time) { s.Skew = 500 * time.Millisecond }
		h.afterAppend = func(r store.Record) {
			if r.Attempt != 2 || r.Kind != store.KindGrant {
				return
			}
			done := r
			done.Seq, done.Kind = r.Seq+1, store.KindDone
			done.WindowStart, done.DoneUntil = r.WindowEnd, r.SlotEnd
			time.Sleep(100 * time.Millisecond)
			if err := ledger.Append(t.Context(), done); err != nil {
				t.Error(err)
			}
		}
		j := &job{do: func(ctx context.Context, l workerlease.Lease, attempt int) error {
			if since(l.Slot.Start) == 5*time.Minute && attempt == 1 {
				return errWork
			}
			return nil
		}}
		runs(t, h, perSlot("a", 0), j.run)
		runs(t, h, perSlot("b", 1), j.run)
		at(11 * time.Minute)
		equal(t, "the slot", j.of(5*time.Minute), "a")
		equal(t, "the next", j.of(10*time.Minute), "a")
	})
}

// A worker that could not record that its work is done, because the store has no primary,
// gets the time to do so before another runs the work again.
func TestWorkThatIsDoneInAnOutageIsRecordedBeforeAnotherRunsItAgain(t *testing.T) {
	for seed := range 40 {
		bubble(t, "", func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			from, to := 7*time.Second+time.Duration(seed)*100*time.Millisecond, 11500*time.Millisecond+time.Duration(seed*37%500)*time.Millisecond
			down := func() error {
				if now := time.Since(t0); now >= from && now < to {
					time.Sleep(min(to-now, 50*time.Millisecond))
					return context.DeadlineExceeded
				}
				return nil
			}
			j := &job{do: func(context.Context, workerlease.Lease, int) error {
				time.Sleep(2 * time.Second)
				return nil
			}}
			for i, name := range []string{"a", "b", "c"} {
				o := perSlot(name, i)
				o.LeaseInterval, o.FailoverWithin = 6*time.Second, 3*time.Second
				runs(t, &hooked{Ledger: ledger.Handle(), before: down}, o, j.run)
			}
			at(25 * time.Second)
			for _, slot := range []time.Duration{6, 12, 18} {
				if who := j.of(slot * time.Second); len(who) > 1 {
					t.Errorf("no primary from %v to %v: slot %vs was done by %v", from, to, slot, who)
				}
			}
		})
	}
}

// A job that fails late in its slot is tried again if as much is left as the standby needs.
func TestTheReleasedRestOfASlotIsUsed(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		for fails := 500 * time.Millisecond; fails <= 3*time.Second; fails += 250 * time.Millisecond {
			bubble(t, fails.String(), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				j := &job{do: func(_ context.Context, _ workerlease.Lease, attempt int) error {
					if attempt == 1 {
						time.Sleep(fails)
						return errWork
					}
					return nil
				}}
				for i := range workers {
					o := perSlot(string(rune('a'+i)), i)
					o.LeaseInterval, o.FailoverWithin = 6*time.Second, 3*time.Second
					o.Job.MinRetry = 100 * time.Millisecond
					runs(t, ledger.Handle(), o, j.run)
				}
				at(11900 * time.Millisecond)
				if who := j.of(6 * time.Second); len(who) != 2 {
					t.Errorf("%d workers, failed after %v: tried by %v, want a second try", workers, fails, who)
				}
			})
		}
	}
}

// A job that fails each time is tried less and less often.
func TestAFailedJobIsTriedAgainLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var began []time.Duration
		j := &job{do: func(context.Context, workerlease.Lease, int) error {
			began = append(began, time.Since(t0))
			return errWork
		}}
		o := perSlot("a", 0)
		o.LeaseInterval = 24 * time.Hour
		a := runs(t, ledger.Handle(), o, j.run)
		at(48 * time.Hour)
		postponed := observed[workerlease.Postponed](a.worker)
		if len(postponed) < 10 {
			t.Errorf("%d Postponed events for %d attempts, want one whenever MinRetry makes the worker wait", len(postponed), len(began))
		}
		for _, e := range postponed {
			if next := began[e.Attempts]; next < since(e.After) || next > since(e.After)+30*time.Second {
				t.Errorf("Postponed = %+v, and the next attempt began at %v, want it soon after that", e, next)
			}
		}
		if n := len(began); n < 10 || n > 30 {
			t.Errorf("%d attempts in a slot of a day, want 10 … 30", n)
		}
		for i := 2; i < len(began); i++ {
			least := min(time.Second<<(i-1), 3*time.Hour)
			if d := began[i] - began[i-1]; d < least {
				t.Errorf("attempt %d came %v after the one before, want at least %v", i+1, d, least)
			}
		}
	})
}
