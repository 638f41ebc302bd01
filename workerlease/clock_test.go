package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// wrong is a clock whose time of day is off and can be stepped. As on a real
// machine its timers are right, and so is its measure of the time that passed
// since it was first read.
type wrong struct {
	clock.Clock
	first time.Duration
	off   atomic.Int64
}

func newWrong(off time.Duration) *wrong {
	c := &wrong{Clock: clock.New(), first: off}
	c.off.Store(int64(off))
	return c
}

func (c *wrong) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.off.Load())) }

func (c *wrong) Since(t time.Time) time.Duration { return c.Clock.Since(t.Add(-c.first)) }

func TestAWrongTimeOfDayHasNoEffect(t *testing.T) {
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, -25 * 365 * 24 * time.Hour} {
		bubble(t, fmt.Sprint(off), func(t *testing.T) {
			c := newWrong(off)
			w := start(t, setup{clock: c})
			at(11 * time.Minute)
			c.off.Store(int64(-off)) // Stepped while a lease is held,
			at(14*time.Minute + 55*time.Second)
			c.off.Store(int64(off + time.Minute)) // and while the next slot is won.
			at(21 * time.Minute)
			equal(t, "slots", w.starts(), minutes(5, 10, 15, 20)...)
			for i := 1; i <= 2; i++ {
				boundary := time.Duration(i+1) * 5 * time.Minute
				near(t, "allocated", w.turn(t, i).allocated, begin(boundary))
				endsAt(t, w.turn(t, i).expiredAt, boundary+5*time.Minute)
			}
			if now := w.Status().StoreTime; now.Sub(time.Now()).Abs() > w.Status().Uncertainty {
				t.Errorf("store time is taken for %v at %v, uncertainty %v", now, time.Now(), w.Status().Uncertainty)
			}
		})
	}
}

func TestALeaseIsOverWithinASecondOfWakingFromASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewSuspendable(clock.New())
		w := start(t, setup{ledger: memory.New(memory.Options{Clock: c.Outside()}), clock: c})
		at(6*time.Minute + 10*time.Second)
		u := w.turn(t, 0)
		if !u.lease.Valid() {
			t.Fatal("the lease isn't valid before the suspend")
		}
		c.Suspend(10 * time.Minute) // It is 16m10s now.
		if u.lease.Valid() || u.lease.Remaining() != 0 {
			t.Error("the lease is valid right after waking")
		}
		at(6*time.Minute + 11*time.Second)
		u = w.turn(t, 0)
		if u.cause != workerlease.ErrLeaseExpired || u.why != workerlease.WindowEnded || u.expiries != 1 {
			t.Errorf("within 1 s: cause %v, why %q, %d expiries", u.cause, u.why, u.expiries)
		}
		if h := w.history(); len(h) > 1 && h[1].allocated < u.ended {
			t.Errorf("allocated again at %v, before the end at %v", h[1].allocated, u.ended)
		}
		// On with what is left of the slot of 15m, and then as ever.
		at(15 * time.Minute) // 25m
		equal(t, "slots", w.starts(), minutes(5, 15, 20)...)
		near(t, "allocated", w.turn(t, 2).allocated, begin(20*time.Minute)-10*time.Minute)
	})
}

func TestASuspendWhileWaitingIsNoticedWithinHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocks.NewSuspendable(clock.New())
		w := start(t, setup{ledger: memory.New(memory.Options{Clock: c.Outside()}), clock: c})
		at(time.Minute)
		c.Suspend(10 * time.Minute) // It is 11m now.
		at(time.Minute + 31*time.Second + lead)
		equal(t, "slots", w.starts(), 10*time.Minute)
		if m := observed[event.Missed](w); len(m) != 1 || m[0].Why != workerlease.TooLate || since(m[0].Until) != 10*time.Minute {
			t.Errorf("Missed events = %+v, want that of 5m", m)
		}
	})
}

func TestAJumpOfTheStoresClockEndsTheLeaseAndLeasingGoesOn(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, -time.Minute, 40 * time.Minute, -40 * time.Minute, time.Hour, -time.Hour, 2 * time.Hour} {
		bubble(t, fmt.Sprint(jump), func(t *testing.T) {
			ledger := faulty(t, nil)
			w := start(t, setup{ledger: ledger})
			at(6 * time.Minute)
			ledger.Shift(jump, "")
			at(finish(10*time.Minute) - time.Second)
			u := w.turn(t, 0)
			// It is noticed when claims for the next slot open.
			if u.ended < 10*time.Minute-lead-time.Microsecond || u.cause != workerlease.ErrClockJumped || u.why != workerlease.ClockJumped || u.expiries != 1 {
				t.Errorf("turn = %+v, want its end by the jump", u)
			}
			e := observed[event.ClockJump](w)
			if len(e) != 2 || e[0].Verdict != event.ClockInQuestion || e[1].Verdict != event.JumpConfirmed || e[0].Server != "memory" || !w.reported(workerlease.ErrClockJumped) {
				t.Errorf("ClockJump events = %+v, want one in question and one confirmed, and an error reported", e)
			}
			// Slots are those of the new store time. What a head that was made by
			// the other time covers stays covered.
			at(2*time.Hour + 32*time.Minute)
			h := w.history()
			last := h[len(h)-1]
			if now := time.Since(t0) + jump; !last.lease.Slot.Contains(t0.Add(now)) {
				t.Errorf("the last lease is of slot %v at %v, want the present one", last.lease.Slot, now)
			}
			for i := 1; i < len(h); i++ {
				// What was won before the clock was set back by more than 10 min is superseded.
				superseded := jump < -10*time.Minute && h[i-1].allocated < 10*time.Minute
				if !superseded && (h[i].lease.Token <= h[i-1].lease.Token || h[i].lease.Start.Before(h[i-1].lease.Start)) {
					t.Errorf("lease %d: %+v after %+v", i, h[i].lease, h[i-1].lease)
				}
			}
			near(t, "allocated", last.allocated+jump, begin(since(last.lease.Slot.Start)))
		})
	}
}

func TestAJumpThatAnotherWorkerOfTheClientNoticesEndsTheLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		client := newClient(&worker{}, setup{ledger: ledger})
		long := start(t, setup{client: client, Options: workerlease.Options{WorkerType: "long", LeaseInterval: time.Hour}})
		start(t, setup{client: client, Options: workerlease.Options{WorkerType: "short", LeaseInterval: time.Minute}})
		at(62 * time.Minute)
		ledger.Shift(10*time.Minute, "")
		at(63 * time.Minute)
		if u := long.turn(t, 0); u.ended < 62*time.Minute || u.cause != workerlease.ErrClockJumped {
			t.Errorf("1 min after the jump: ended at %v with %v, want %v", u.ended, u.cause, workerlease.ErrClockJumped)
		}
	})
}

func TestAnotherServerWithTheSameTimeChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		w := start(t, setup{ledger: ledger})
		at(6 * time.Minute)
		ledger.Shift(0, "other")
		at(26 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 10, 15, 20, 25)...)
		e := observed[event.ClockJump](w)
		if len(e) != 0 || w.reported(workerlease.ErrClockJumped) {
			t.Errorf("ClockJump events = %+v, want none, and no error", e)
		}
		if u := w.turn(t, 0); u.cause != workerlease.ErrLeaseExpired {
			t.Errorf("the lease ended with %v, want %v", u.cause, workerlease.ErrLeaseExpired)
		}
	})
}

func TestAStampThatIsNoPlausibleTimeIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Shift(-200*365*24*time.Hour, "")
		w := start(t, setup{ledger: ledger})
		at(time.Minute)
		if s := w.Status(); s.Healthy() || s.LastError == nil || !s.StoreTime.IsZero() {
			t.Errorf("status = %v, store time %v; want it unhealthy and without a time", s, store.Format(s.StoreTime))
		}
	})
}

func TestTheSystemClockGoesOn(t *testing.T) {
	c := workerlease.NewSystemClock()
	b, ok := c.(interface{ Boottime() time.Duration })
	if !ok {
		t.Skip("no boot time on this system")
	}
	before := b.Boottime()
	<-c.After(2 * time.Millisecond)
	if got := b.Boottime() - before; got < 2*time.Millisecond || got > time.Minute {
		t.Errorf("boot time went on by %v in 2 ms", got)
	}
}

// lateRechecks is a clock whose machine is so busy that the goroutines of timers of a second
// begin late, until they are told to keep up. It counts them.
type lateRechecks struct {
	*clocks.Suspendable
	late  atomic.Int64
	calls atomic.Int64
}

func (c *lateRechecks) AfterFunc(d time.Duration, f func()) *clock.Timer {
	if d == time.Second {
		c.calls.Add(1)
		return c.Suspendable.AfterFunc(d, func() {
			time.Sleep(time.Duration(c.late.Load()))
			f()
		})
	}
	return c.Suspendable.AfterFunc(d, f)
}

// A recheck that is held up while the last lease ends and the next begins isn't repeated
// besides the next lease's own.
func TestALateRecheckIsNotRepeatedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lateRechecks{Suspendable: clocks.NewSuspendable(clock.New())}
		start(t, setup{ledger: memory.New(memory.Options{}), clock: c, Options: workerlease.Options{LeaseInterval: 10 * time.Second}})
		for i := range 10 {
			at(time.Duration(i)*10*time.Second + 17*time.Second)
			c.late.Store(int64(4500 * time.Millisecond))
			at(time.Duration(i)*10*time.Second + 22*time.Second + 500*time.Millisecond)
			c.late.Store(0)
		}
		at(125 * time.Second)
		before := c.calls.Load()
		at(128 * time.Second)
		if n := c.calls.Load() - before; n > 4 {
			t.Errorf("a lease was looked at %d times in 3 s, want once a second", n)
		}
	})
}

// A client that had no worker for long samples the time before a new one decides anything,
// since what it knows is off by what the clocks have drifted apart meanwhile.
func TestAWorkerOfAnIdleClientKnowsTheTimeBeforeItAims(t *testing.T) {
	for _, c := range []struct {
		idle time.Duration
		ppm  int
	}{
		{24 * time.Hour, 20}, {24 * time.Hour, -20}, {30 * 24 * time.Hour, 500}, {30 * 24 * time.Hour, -500},
	} {
		// Right before and right after a boundary, the guess would be on the other side of it.
		for _, to := range []time.Duration{-4 * time.Second, time.Second} {
			bubble(t, fmt.Sprintf("%v %v ppm %v", c.idle, c.ppm, to), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clocks.Drifting(clock.New(), c.ppm)})
				try := func() *workerlease.Claim {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
					defer cancel()
					claim, err := client.TryClaim(ctx, named("try", 0))
					if err != nil && !errors.Is(err, workerlease.ErrNotClaimed) {
						t.Fatal(err)
					}
					return claim
				}
				if claim := try(); claim != nil {
					_ = claim.Release(t.Context())
				}
				at(c.idle + to)
				if to > 0 {
					w := start(t, setup{client: client, ledger: ledger, Options: named("started", 0)})
					time.Sleep(2 * time.Second)
					if h := w.history(); len(h) > 0 {
						t.Errorf("works in mid-slot, in %v", h[0].lease.Slot)
					}
					w.stop(t)
				}
				began := time.Now()
				claim := try()
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("TryClaim took %v, want it at once", took)
				}
				if claim == nil {
					t.Fatal("the slot was refused, and is free")
				}
				slot := claim.Lease.Slot
				if now := time.Now(); now.Before(slot.Start) || !now.Before(slot.End) {
					t.Errorf("claimed %v, want the slot of now, %v", slot, now)
				}
				_ = claim.Release(t.Context())
			})
		}
	}
}
