package storekit

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// judge is a database that is checked.
type judge struct {
	checks atomic.Int32
	takes  time.Duration // how long a check takes
	err    error
}

func (j *judge) check(ctx context.Context) error {
	j.checks.Add(1)
	err := j.err
	select {
	case <-time.After(j.takes):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wantChecks ensures fitness, and compares the error and the number of checks so far.
func (j *judge) wantChecks(t *testing.T, what string, f *Fitness, want error, checks int) {
	t.Helper()
	if err := f.Ensure(t.Context()); !errors.Is(err, want) || err != nil && want == nil || int(j.checks.Load()) != checks {
		t.Errorf("%s: Ensure() = %v after %d checks, want %v after %d", what, err, j.checks.Load(), want, checks)
	}
}

func TestADatabaseIsCheckedAtTheFirstUseAndEveryTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{}
		f := NewFitness(clock.New(), j.check)
		j.wantChecks(t, "at first", f, nil, 1)
		time.Sleep(10*time.Minute - 1)
		j.wantChecks(t, "just before 10 min", f, nil, 1)
		time.Sleep(1)
		j.wantChecks(t, "after 10 min", f, nil, 2)
		f.Doubt()
		j.wantChecks(t, "in doubt", f, nil, 2)
		time.Sleep(30 * time.Second)
		j.wantChecks(t, "30s after a doubt", f, nil, 3)
		if err := f.Check(t.Context()); err != nil || j.checks.Load() != 4 {
			t.Errorf("Check() = %v after %d checks, want another one", err, j.checks.Load())
		}
		time.Sleep(time.Minute)
		f.Doubt()
		j.wantChecks(t, "in doubt a minute after the last check", f, nil, 5)
	})
}

func TestWhatIsForgottenIsCheckedAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{}
		f := NewFitness(clock.New(), j.check)
		j.wantChecks(t, "at first", f, nil, 1)
		j.takes, j.err = 5*time.Second, io.EOF
		f.Forget()
		j.wantChecks(t, "when it is forgotten, by a slow check that fails", f, io.EOF, 2)
		j.err = nil
		done := make(chan error, 1)
		go func() { done <- f.Ensure(t.Context()) }()
		synctest.Wait()
		f.Forget()
		if err := <-done; err != nil || j.checks.Load() != 3 {
			t.Errorf("Ensure() = %v after %d checks, want nil after 3", err, j.checks.Load())
		}
		j.wantChecks(t, "when it was forgotten during the last check", f, nil, 4)
		j.wantChecks(t, "when it was found fit since", f, nil, 4)
	})
}

func TestWhatIsSuspectedIsCheckedAtOnceAndCountsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{}
		f := NewFitness(clock.New(), j.check)
		j.wantChecks(t, "at first", f, nil, 1)
		f.Suspect()
		j.wantChecks(t, "when it is suspected", f, nil, 2)
		j.wantChecks(t, "after that", f, nil, 2)
		f.Suspect()
		j.err = io.EOF
		j.wantChecks(t, "when it is suspected and can't be reached", f, nil, 3)
		j.wantChecks(t, "after that failed", f, nil, 3)
		f.Suspect()
		j.takes, j.err = 5*time.Second, nil
		began := time.Now()
		j.wantChecks(t, "when the check is slow", f, nil, 4)
		if took := time.Since(began); took != checkWait {
			t.Errorf("Ensure() took %v, want %v", took, checkWait)
		}
		time.Sleep(time.Minute)
		f.Suspect()
		j.err = store.ErrRefused
		time.Sleep(10 * time.Second)
		j.takes = 0
		j.wantChecks(t, "when it is suspected and unfit", f, store.ErrRefused, 5)
	})
}

func TestAnUnfitDatabaseIsRefusedUntilItIsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{store.ErrRefused, store.ErrMissing} {
			j := &judge{err: want}
			f := NewFitness(clock.New(), j.check)
			j.wantChecks(t, "at first", f, want, 1)
			j.wantChecks(t, "at once again", f, want, 2)
			j.err = nil
			j.wantChecks(t, "when it is mended", f, nil, 3)
			j.err = want
			time.Sleep(time.Hour)
			j.wantChecks(t, "when it is unfit again", f, want, 4)
			j.err = io.EOF
			j.wantChecks(t, "when it can't be reached since", f, io.EOF, 5)
		}
	})
}

func TestADatabaseThatWasFitIsUsedWhileItCannotBeChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{}
		f := NewFitness(clock.New(), j.check)
		j.wantChecks(t, "at first", f, nil, 1)
		j.err = io.EOF
		time.Sleep(time.Hour)
		j.wantChecks(t, "a check that fails", f, nil, 2)
		j.wantChecks(t, "just after it", f, nil, 2)
		time.Sleep(30 * time.Second)
		j.wantChecks(t, "30s after it", f, nil, 3)
		time.Sleep(time.Hour)
		j.wantChecks(t, "2h after the last that succeeded", f, io.EOF, 4)
	})
}

func TestOneCheckServesAllAndEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{takes: time.Second}
		f := NewFitness(clock.New(), j.check)
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- f.Ensure(t.Context()) }()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := f.Ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ensure() until its context's end = %v, want DeadlineExceeded", err)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Errorf("Ensure() of many at once = %v, want nil", err)
			}
		}
		if j.checks.Load() != 1 {
			t.Errorf("%d checks for 4 operations at once, want 1", j.checks.Load())
		}
		j.takes = time.Hour
		f = NewFitness(clock.New(), j.check)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ensure() = %v, want DeadlineExceeded", err)
		}
		synctest.Wait()
		began := time.Now()
		if err := f.Ensure(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != checkPatience {
			t.Errorf("a check that hangs ended after %v with %v, want after %v", time.Since(began), err, checkPatience)
		}
	})
}

func TestAnOperationWaitsASecondForACheckOfWhatWasFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{}
		f := NewFitness(clock.New(), j.check)
		j.wantChecks(t, "at first", f, nil, 1)
		j.takes, j.err = 5*time.Second, store.ErrRefused
		time.Sleep(time.Hour)
		began := time.Now()
		j.wantChecks(t, "during a slow check", f, nil, 2)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waited for %v, want 1s", took)
		}
		began = time.Now()
		j.wantChecks(t, "another during it", f, nil, 2)
		if took := time.Since(began); took != 0 {
			t.Errorf("another waited for %v, want not at all", took)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		j.wantChecks(t, "when it has found it unfit", f, store.ErrRefused, 3)
	})
}

func TestACheckThatIgnoresItsContextIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		ends := make(chan struct{})
		f := NewFitness(clock.New(), func(context.Context) error {
			if checks.Add(1) == 2 {
				<-ends // It hears of nothing.
			}
			return nil
		})
		ensure := func(what string, want int32) {
			t.Helper()
			if err := f.Ensure(t.Context()); err != nil || checks.Load() != want {
				t.Errorf("%s: Ensure() = %v after %d checks, want nil after %d", what, err, checks.Load(), want)
			}
		}
		ensure("at first", 1)
		time.Sleep(10 * time.Minute)
		ensure("when the second check hangs", 2)
		time.Sleep(checkPatience)
		ensure("when it was given up", 2)
		time.Sleep(30 * time.Second)
		ensure("30s later", 3)
		close(ends)
	})
}

func TestAnOperationIsToldThatACheckTookTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFitness(clock.New(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		r := NewRunner(RunnerOptions{Store: "test", Fitness: f})
		_, err := Run(t.Context(), r, "get", "job:1", func(context.Context) (int, error) { t.Error("it was begun"); return 0, nil })
		if want := "test: get job:1: the check of the database took longer than 15s"; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("an operation during a check that hangs = %v, want %q, and ErrNotStored", err, want)
		}
	})
}

// A check that an operation begins is for all who wait for it: a store that ends statements whose callers have gone leaves it alone.
func TestACheckOutlivesTheCallerThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFitness(clock.New(), func(ctx context.Context) error {
			select {
			case <-Gone(ctx).Done():
				return errors.New("the check was ended")
			case <-time.After(3 * time.Second):
				return nil
			}
		})
		r := NewRunner(RunnerOptions{Store: "s", Fitness: f, Linger: func() time.Duration { return time.Minute }})
		defer func() { must(t, "Close()", r.Close(context.WithoutCancel(t.Context()), func() error { return nil })) }()
		call := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := Run(ctx, r, "tail", "k", func(context.Context) (none struct{}, err error) { return none, nil })
			return err
		}
		first := make(chan error, 1)
		go func() { first <- call(time.Second) }()
		synctest.Wait()
		if err := call(10 * time.Second); err != nil {
			t.Errorf("the second operation = %v, want nil", err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first operation = %v, want its deadline", err)
		}
	})
}
