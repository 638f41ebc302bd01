package workerlease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// doneAfterGrant is a ledger in which a slot is recorded as done right after the grant of its
// second attempt.
func doneAfterGrant(t *testing.T) *hooked {
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
	return h
}

// A done record may come after the grant of the worker that takes over, which has to wait
// until its window has surely begun. It looks once more before it begins.
func TestNobodyBeginsAgainOnceDoneIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := doneAfterGrant(t)
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

// A store that fails at the first operation after each pause, as connections do that a
// firewall cuts, keeps nobody from the work of one that has died.
func TestAConnectionThatBreaksInEachPauseKeepsNobodyFromTryingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var dead atomic.Bool
		j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
			if l.InstanceID == "a" && since(l.Slot.Start) == 5*time.Minute {
				dead.Store(true)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		dies := func() error {
			if dead.Load() {
				return context.DeadlineExceeded
			}
			return nil
		}
		var newest time.Time
		breaks := func() error {
			idle := time.Since(newest)
			newest = time.Now()
			if idle > 3*time.Second {
				return context.DeadlineExceeded
			}
			return nil
		}
		runs(t, &hooked{Ledger: ledger.Handle(), before: dies}, perSlot("a", 0), j.run)
		runs(t, &hooked{Ledger: ledger.Handle(), before: breaks}, perSlot("b", 1), j.run)
		at(6 * time.Minute)
		equal(t, "the slot", j.of(5*time.Minute), "a", "b")
		dead.Store(false)
	})
}

// TryClaim is refused at once if the slot is recorded as done between grant and beginning.
func TestTryClaimIsRefusedASlotThatIsDoneAfterItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := doneAfterGrant(t)
		j := &job{do: func(context.Context, workerlease.Lease, int) error { return errWork }}
		a := runs(t, h, perSlot("a", 0), j.run)
		at(5*time.Minute + 2*time.Second)
		a.cancel()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		claim, err := workerlease.NewClient(h, workerlease.ClientOptions{}).TryClaim(ctx, perSlot("b", 0))
		if !errors.Is(err, workerlease.ErrNotClaimed) || claim != nil {
			t.Errorf("TryClaim = %v, %v; want ErrNotClaimed", claim, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("TryClaim took %v, want it at once", took)
		}
	})
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
		postponed := observed[event.Postponed](a.worker)
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
		for i := 1; i < len(began); i++ {
			least := min(6*time.Minute<<(i-1), 3*time.Hour)
			if d := began[i] - began[i-1]; d < least {
				t.Errorf("attempt %d came %v after the one before, want at least %v", i+1, d, least)
			}
		}
	})
}

// Whatever is said between two attempts at a job, the next one comes no sooner.
func TestAnOrderDoesNotEndTheWaitForTheNextAttempt(t *testing.T) {
	const least = 4 * time.Minute
	for name, order := range map[string]operate.Order{
		"pause":   {Kind: store.OrderPause, For: time.Second},
		"resume":  {Kind: store.OrderPause, For: time.Hour}, // It is ended at once.
		"prefer":  {Kind: store.OrderPrefer, Target: "b", For: time.Hour, Now: true},
		"drain":   {Kind: store.OrderDrain, Target: "elsewhere", For: time.Hour},
		"trigger": {Kind: store.OrderTrigger, For: 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{do: func(context.Context, workerlease.Lease, int) error { return errWork }}
			begin := func(name string, priority int) {
				o := perSlot(name, priority)
				o.LeaseInterval, o.Job.MinRetry = time.Hour, least
				runsAtOnce(t, ledger.Handle(), o, j.run)
			}
			at(30 * time.Minute)
			begin("a", 0)
			begin("b", 1)
			at(time.Hour + time.Minute)
			if n := len(j.of(time.Hour)); n != 1 {
				t.Fatalf("%d attempts, want 1: the other worker waits, too", n)
			}
			order.WorkerType = "job"
			give(t, ledger.Handle(), order)
			if name == "resume" {
				_, err := operate.On(ledger.Handle()).End(t.Context(), operate.Order{WorkerType: "job"})
				must(t, err)
			}
			at(time.Hour + 2*time.Minute)
			begin("c", 2) // It reads the ledger now.
			at(2*time.Hour - time.Minute)
			var began []time.Duration
			for _, c := range j.calls {
				if c.slot == time.Hour {
					began = append(began, c.began)
				}
			}
			for i := 1; i < len(began); i++ {
				if wait := began[i] - began[i-1]; wait < min(least<<(i-1), time.Hour/8) {
					t.Errorf("attempt %d came %v after the one before, want %v at least", i+1, wait, least<<(i-1))
				}
			}
			if len(began) < 8 {
				t.Errorf("%d attempts in an hour, want 8 or more", len(began))
			}
		})
	}
}
