package clocks_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/testutil/clocks"
)

// wrongClock has the length of its base's time in which it shows a minute.
type wrongClock struct {
	clock.Clock
	minute time.Duration
}

// wrongClocks are clocks over a base.
func wrongClocks(base clock.Clock) map[string]wrongClock {
	return map[string]wrongClock{
		"an hour ahead":   {clocks.Skewed(base, time.Hour), time.Minute},
		"an hour late":    {clocks.Skewed(base, -time.Hour), time.Minute},
		"half as fast":    {clocks.Drifting(base, -500_000), 2 * time.Minute},
		"twice as fast":   {clocks.Drifting(base, 1_000_000), 30 * time.Second},
		"a bit too fast":  {clocks.Drifting(base, 100), 59994000600 * time.Nanosecond},
		"right":           {clocks.Drifting(base, 0), time.Minute},
		"suspendable":     {clocks.NewSuspendable(base), time.Minute},
		"its outside":     {clocks.NewSuspendable(base).Outside(), time.Minute},
		"skew over drift": {clocks.Skewed(clocks.Drifting(base, 1_000_000), time.Hour), 30 * time.Second},
	}
}

func TestEveryWaitTakesItsTimeByTheClock(t *testing.T) {
	waits := map[string]func(c clock.Clock, d time.Duration){
		"After":  func(c clock.Clock, d time.Duration) { <-c.After(d) },
		"Sleep":  func(c clock.Clock, d time.Duration) { c.Sleep(d) },
		"Timer":  func(c clock.Clock, d time.Duration) { <-c.Timer(d).C },
		"Tick":   func(c clock.Clock, d time.Duration) { tick := c.Tick(d / 2); <-tick; <-tick },
		"Ticker": func(c clock.Clock, d time.Duration) { k := c.Ticker(d / 2); defer k.Stop(); <-k.C; <-k.C },
		"AfterFunc": func(c clock.Clock, d time.Duration) {
			done := make(chan struct{})
			c.AfterFunc(d, func() { close(done) })
			<-done
		},
		"WithTimeout": func(c clock.Clock, d time.Duration) {
			ctx, cancel := c.WithTimeout(context.Background(), d)
			defer cancel()
			<-ctx.Done()
		},
		"WithDeadline": func(c clock.Clock, d time.Duration) {
			ctx, cancel := c.WithDeadline(context.Background(), c.Now().Add(d))
			defer cancel()
			<-ctx.Done()
		},
	}
	for name := range wrongClocks(clock.New()) {
		for what, wait := range waits {
			t.Run(name+"/"+what+"/in a bubble", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					base := clock.New()
					c := wrongClocks(base)[name]
					base.Sleep(time.Minute) // so that a drift has shifted the time of day
					began, shown := base.Now(), c.Now()
					wait(c, time.Minute)
					// Two ticks may each be rounded up.
					if got := base.Since(began); got < c.minute || got > c.minute+3 {
						t.Errorf("%s of 1m took %v, want %v", what, got, c.minute)
					}
					if got := c.Since(shown); got < time.Minute || got > time.Minute+6 {
						t.Errorf("Since = %v, want 1m", got)
					}
				})
			})
			t.Run(name+"/"+what+"/over a fake", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := clocks.NewFake(t0)
					c := wrongClocks(f)[name]
					done := false
					go func() { wait(c, time.Minute); done = true }()
					f.Advance(t, c.minute-time.Microsecond)
					synctest.Wait()
					if done {
						t.Errorf("%s of 1m took less than %v", what, c.minute)
					}
					f.Advance(t, 2*time.Microsecond)
					synctest.Wait()
					if !done {
						t.Errorf("%s of 1m took more than %v", what, c.minute)
					}
				})
			})
		}
	}
}

func TestDriftingShowsAnotherLengthOfTime(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		ppm        int
		real, want time.Duration
	}{
		{100, 10_000 * time.Second, 10_001 * time.Second},
		{-100, 10_000 * time.Second, 9_999 * time.Second},
		{0, 200 * year, 200 * year},
		{20, 100 * year, 100*year + year/500},
		{-999_999, 1_000_000 * time.Second, time.Second},
		{1, 999_999, 999_999},
	} {
		f := clocks.NewFake(t0)
		d := clocks.Drifting(f, c.ppm)
		f.Advance(t, c.real)
		if got := d.Since(t0); got != c.want {
			t.Errorf("Drifting(%d).Since after %v = %v, want %v", c.ppm, c.real, got, c.want)
		}
		if got := d.Until(t0); got != -c.want {
			t.Errorf("Drifting(%d).Until after %v = %v, want %v", c.ppm, c.real, got, -c.want)
		}
	}
}

// Whoever waits until a time would spin if it were woken a nanosecond early.
func TestNoTimerOfADriftingClockIsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ppm := range []int{-999_999, -1000, -333, -1, 1, 7, 999, 1_000_003} {
			c := clocks.Drifting(clock.New(), ppm)
			for d := time.Duration(1); d < time.Hour; d = d*7/3 + 1 {
				began := c.Now()
				c.Sleep(d)
				if got := c.Since(began); got < d {
					t.Errorf("drift %d ppm: Sleep(%d) took %d by the clock", ppm, d, got)
				}
			}
		}
	})
}

func TestADriftThatCannotBePanics(t *testing.T) {
	for _, ppm := range []int{-1_000_000, -2_000_000, 1_000_000_001} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Drifting(%d) did not panic", ppm)
				}
			}()
			clocks.Drifting(clock.New(), ppm)
		}()
	}
}

func TestOnlyBoottimeGoesOnDuringASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clocks.NewSuspendable(clock.New())
		outside, began := s.Outside(), s.Now()
		fired := false
		s.AfterFunc(time.Minute, func() { fired = true })
		s.Suspend(time.Hour)
		s.Suspend(-time.Hour)
		s.Sleep(59 * time.Second)
		if got, want := s.Boottime(), time.Hour+59*time.Second; got != want {
			t.Errorf("Boottime() = %v, want %v", got, want)
		}
		if got, want := s.Since(began), 59*time.Second; got != want {
			t.Errorf("Since = %v, want %v", got, want)
		}
		if got, want := outside.Since(began), time.Hour+59*time.Second; got != want {
			t.Errorf("Outside().Since = %v, want %v", got, want)
		}
		synctest.Wait()
		if fired {
			t.Error("a timer went on during the suspend")
		}
	})
}

func TestBoottimeIsKeptByClocksOnTop(t *testing.T) {
	f := clocks.NewFake(t0)
	s := clocks.NewSuspendable(f)
	skewed, ok := clocks.Skewed(s, time.Hour).(bootClock)
	if !ok {
		t.Fatal("Skewed lost Boottime")
	}
	drifting, ok := clocks.Drifting(s, 1_000_000).(bootClock)
	if !ok {
		t.Fatal("Drifting lost Boottime")
	}
	again := clocks.NewSuspendable(s)
	again.Suspend(time.Second)
	f.Advance(t, time.Minute)
	s.Suspend(time.Minute)
	if got := []time.Duration{skewed.Boottime(), drifting.Boottime(), again.Boottime()}; !slices.Equal(got,
		[]time.Duration{2 * time.Minute, 4 * time.Minute, 2*time.Minute + time.Second}) {
		t.Errorf("Boottime() = %v, want 2m, 4m, 2m1s", got)
	}
	if _, ok := clocks.Skewed(f, 0).(bootClock); ok {
		t.Error("Skewed has a Boottime that its base has not")
	}
}

func TestContextsEndAsThoseOfPackageContextDo(t *testing.T) {
	cause := errors.New("a cause")
	synctest.Test(t, func(t *testing.T) {
		f := clocks.NewFake(t0)
		check := func(what string, ctx context.Context, err, cause error) {
			t.Helper()
			synctest.Wait()
			if !errors.Is(ctx.Err(), err) || !errors.Is(context.Cause(ctx), cause) || (err != nil) != ended(ctx) {
				t.Errorf("%s: Err() = %v, Cause = %v, done: %v; want %v, %v", what, ctx.Err(), context.Cause(ctx), ended(ctx), err, cause)
			}
		}
		parent, end := context.WithCancelCause(context.WithValue(t.Context(), t0, "value"))
		timedOut, cancel1 := f.WithTimeout(parent, time.Minute)
		defer cancel1()
		derived, cancel2 := context.WithCancel(timedOut)
		defer cancel2()
		cancelled, cancel3 := f.WithTimeout(parent, time.Minute)
		orphan, cancel4 := f.WithDeadline(parent, t0.Add(time.Hour))
		defer cancel4()
		past, cancel5 := f.WithDeadline(parent, t0)
		defer cancel5()
		check("alive", timedOut, nil, nil)
		check("alive", derived, nil, nil)
		check("past", past, context.DeadlineExceeded, context.DeadlineExceeded)
		if d, ok := timedOut.Deadline(); !ok || !d.Equal(t0.Add(time.Minute)) || timedOut.Value(t0) != "value" {
			t.Errorf("Deadline() = %v, Value = %v", d, timedOut.Value(t0))
		}
		cancel3()
		check("cancelled", cancelled, context.Canceled, context.Canceled)
		f.Advance(t, time.Minute)
		check("timed out", timedOut, context.DeadlineExceeded, context.DeadlineExceeded)
		check("derived", derived, context.DeadlineExceeded, context.DeadlineExceeded)
		end(cause)
		check("orphan", orphan, context.Canceled, cause)
		late, cancel6 := f.WithTimeout(parent, time.Minute)
		defer cancel6()
		check("late", late, context.Canceled, cause)
	})
}

func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
