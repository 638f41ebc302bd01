package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func TestRunIfHeldRunsOnlyUnderTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := start(t, setup{ledger: ledger, work: nothing})
		none := func(context.Context, workerlease.Lease) error { t.Error("called without a lease"); return nil }
		if held, err := w.RunIfHeld(t.Context(), none); held || err != nil {
			t.Errorf("RunIfHeld without a lease = %v, %v", held, err)
		}
		at(6 * time.Minute)
		held, err := w.RunIfHeld(t.Context(), func(ctx context.Context, l workerlease.Lease) error {
			if !l.Valid() || ctx.Err() != nil {
				t.Errorf("called with an invalid lease: %v", ctx.Err())
			}
			return errWork
		})
		if !held || !errors.Is(err, errWork) {
			t.Errorf("RunIfHeld = %v, %v, want what the function returned", held, err)
		}
		var ended, stopped time.Duration
		go func() {
			_, _ = w.RunIfHeld(t.Context(), func(ctx context.Context, _ workerlease.Lease) error {
				<-ctx.Done()
				ended = time.Since(t0)
				if cause := context.Cause(ctx); !errors.Is(cause, workerlease.ErrStopped) {
					t.Errorf("cause = %v, want ErrStopped", cause)
				}
				time.Sleep(5 * time.Second)
				return nil
			})
		}()
		at(7 * time.Minute)
		must(t, w.StopLeasing(t.Context()))
		stopped = time.Since(t0)
		if ended != 7*time.Minute || stopped != 7*time.Minute+5*time.Second {
			t.Errorf("the context ended at %v, and leasing stopped at %v, want it to wait for the code", ended, stopped)
		}
		if r := newest(t, ledger); r.Kind != store.KindRelease || since(r.WindowEnd) < stopped {
			t.Errorf("head is a %s at %v, want a release after the code has returned", r.Kind, since(r.WindowEnd))
		}
	})
}

func TestATaskThatEndsWhileItLeadsOnIsCalledAgainInTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{each: time.Minute}
		o := named("a", 0)
		o.Continuous = true
		a := runs(t, ledger, o, j.run)
		at(31 * time.Minute)
		for _, slot := range minutes(5, 10, 15, 20, 25, 30) {
			equal(t, fmt.Sprint("slot ", slot), j.of(slot), "a")
		}
		rested := observed[event.Rested](a.worker)
		if len(rested) != 5 {
			t.Errorf("%d Rested events, want one in each of the 5 slots whose task has returned", len(rested))
		}
		for i, e := range rested {
			if want := minutes(10, 15, 20, 25, 30)[i]; since(e.Until) != want || e.Lease.Token == 0 {
				t.Errorf("Rested = %+v, want it up to %v", e, want)
			}
		}
		if n := len(observed[event.Allocated](a.worker)); n != 1 {
			t.Errorf("%d leases, want one", n)
		}
	})
}

func TestTryClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		try := func(name string) (*workerlease.Claim, error) {
			return attempt(t, ledger.Handle(), named(name, 0))
		}
		at(6 * time.Minute)
		first, err := try("first")
		must(t, err)
		if l := first.Lease; !l.Valid() || since(l.Expiry) != 10*time.Minute || time.Since(t0) > 6*time.Minute+2*time.Second {
			t.Errorf("claimed %+v at %v, want the rest of the slot at once", l, time.Since(t0))
		}
		if _, err := try("second"); !errors.Is(err, workerlease.ErrNotClaimed) {
			t.Errorf("TryClaim while it is held = %v, want ErrNotClaimed", err)
		}
		must(t, first.Release(t.Context()))
		if cause := context.Cause(first.Context()); !errors.Is(cause, workerlease.ErrStopped) {
			t.Errorf("after Release, the context's cause is %v", cause)
		}
		third, err := try("third")
		if err != nil {
			t.Fatalf("after Release: %v", err)
		}
		if third.Lease.Token <= first.Lease.Token {
			t.Errorf("token %d after %d", third.Lease.Token, first.Lease.Token)
		}
		at(14 * time.Minute)
		if cause := context.Cause(third.Context()); !errors.Is(cause, workerlease.ErrLeaseExpired) {
			t.Errorf("after the slot, the context's cause is %v", cause)
		}
		if got := holders(t, ledger); !slices.Equal(got, []string{"first", "third"}) {
			t.Errorf("grants to %v, want no claim of a later slot", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		down := faulty(t, nil)
		down.Break(faultstore.Down())
		client := workerlease.NewClient(down, workerlease.ClientOptions{})
		if _, err := client.TryClaim(ctx, workerlease.Options{WorkerType: "job"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryClaim of a store that is down = %v, want the context's end", err)
		}
	})
}

func TestTryClaimInTheLastLeadOfASlot(t *testing.T) {
	for name, test := range map[string]struct {
		when      time.Duration
		contender bool
		want      string // in the error; empty: none
	}{
		"most of it is left":       {9*time.Minute + 50*time.Second + time.Millisecond, false, ""},
		"half of it is left":       {9*time.Minute + 55*time.Second, false, ""},
		"less than the margin":     {10*time.Minute - 200*time.Millisecond, false, "too late"},
		"the next slot is claimed": {9*time.Minute + 55*time.Second, true, "other has claimed the slot after"},
	} {
		for _, continuous := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, " ", continuous), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				at(6 * time.Minute)
				if test.contender {
					start(t, setup{ledger: ledger.Handle(), Options: named("other", 0)})
				}
				at(test.when)
				o := named("me", 0)
				o.Continuous = continuous
				claim, err := attempt(t, ledger.Handle(), o)
				if test.want != "" {
					if !errors.Is(err, workerlease.ErrNotClaimed) || !strings.Contains(err.Error(), test.want) {
						t.Errorf("TryClaim = %v, want ErrNotClaimed, with %q", err, test.want)
					}
					if took := time.Since(t0) - test.when; took > 300*time.Millisecond {
						t.Errorf("it took %v", took)
					}
					return
				}
				must(t, err)
				// One that goes on may have been extended by now: claims for the next slot are open.
				l := claim.Lease
				ahead := continuous && since(l.Slot.Start) == 10*time.Minute && since(l.Expiry) == 15*time.Minute
				if rest := since(l.Slot.Start) == 5*time.Minute && since(l.Expiry) == 10*time.Minute; !l.Valid() || since(l.Start) >= 10*time.Minute || !rest && !ahead {
					t.Errorf("claimed %+v, want the rest of the slot", l)
				}
				at(10*time.Minute + time.Second)
				if lives := claim.Context().Err() == nil; lives != continuous {
					t.Errorf("in the next slot, the claim lives: %v, want %v", lives, continuous)
				}
				if got := len(holders(t, ledger)); (got > 1) != continuous {
					t.Errorf("%d grants, want a claim of a later slot: %v", got, continuous)
				}
				must(t, claim.Release(t.Context()))
			})
		}
	}
}

// A claim is for one slot: with CatchUp it would be for another, and
// nobody would run it.
func TestAClaimDoesNotMakeUpForAMissedSlot(t *testing.T) {
	_, err := workerlease.TryClaim(t.Context(), memory.New(memory.Options{}),
		workerlease.Options{WorkerType: "job", Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest}})
	if problems := workerlease.OptionErrors(err); len(problems) != 1 || problems[0].Field != "Job.CatchUp" {
		t.Errorf("TryClaim() = %v, want that Job.CatchUp is refused", err)
	}
}

// A claim that is stopped, or ends early, frees its slot only when the code has returned.
func TestAClaimIsReleasedAfterItsCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		at(6 * time.Minute)
		claim := claimed(t, ledger.Handle(), named("a", 0))
		released := make(chan error, 1)
		held, err := claim.RunIfHeld(t.Context(), func(ctx context.Context, l workerlease.Lease) error {
			if !l.Valid() || l.Token != claim.Lease.Token {
				t.Errorf("called under %+v, want the claim's lease", l)
			}
			go func() { released <- claim.Release(t.Context()) }()
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			if r := newest(t, ledger); r.Kind != store.KindGrant {
				t.Errorf("the head is a %s while the code runs", r.Kind)
			}
			return errWork
		})
		if !held || !errors.Is(err, errWork) {
			t.Errorf("RunIfHeld = %v, %v, want what the function returned", held, err)
		}
		must(t, <-released)
		if r := newest(t, ledger); r.Kind != store.KindRelease {
			t.Errorf("the head is a %s, want a release", r.Kind)
		}
		if held, _ := claim.RunIfHeld(t.Context(), nil); held {
			t.Error("RunIfHeld after Release = true")
		}
	})
}

// Whatever keeps it from the slot, TryClaim says so at once, and claims at once what nothing keeps it from.
func TestTryClaimWaitsForNobody(t *testing.T) {
	bubble(t, "it claims while another worker is preferred", func(t *testing.T) {
		for _, now := range []bool{false, true} {
			l := memory.New(memory.Options{})
			prefer(t, l.Handle(), "b", now)
			began := time.Now()
			c, err := workerlease.NewClient(l.Handle(), workerlease.ClientOptions{}).TryClaim(t.Context(), named("a", 3))
			if took := time.Since(began); err != nil || took > 10*time.Millisecond {
				t.Fatalf("TryClaim() = %v after %v, want the slot at once", err, took)
			}
			must(t, c.Release(t.Context()))
		}
	})
	bubble(t, "it doesn't wait for an attempt that is due after its slot", func(t *testing.T) {
		l := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.Job.MinRetry, o.Job.StartWithin = time.Minute, 5*time.Minute
		try := func() (time.Duration, *workerlease.Claim, error) {
			began := time.Now()
			c, err := workerlease.NewClient(l.Handle(), workerlease.ClientOptions{}).TryClaim(t.Context(), o)
			return time.Since(began), c, err
		}
		at(4*time.Minute + 30*time.Second)
		_, c, err := try()
		must(t, err)
		must(t, c.Release(t.Context()))
		took, _, err := try()
		if want := "and the next one may not begin before 2000-01-01T00:05:"; !errors.Is(err, workerlease.ErrNotClaimed) || !strings.Contains(err.Error(), want) || took > 10*time.Millisecond {
			t.Errorf("TryClaim() = %v after %v, want ErrNotClaimed at once, with %q", err, took, want)
		}
	})
}

// Who has waited for long enough gets the claim that comes just then, or it is no attempt: MaxAttempts may be 1. The store answers
// when the window has begun, so that the lease is to begin in the same step, and the caller leaves in between.
func TestAClaimThatComesWhenNobodyWaitsAnyMoreIsNoAttempt(t *testing.T) {
	job := func(o *workerlease.Options) { o.Job = &workerlease.Job{MaxAttempts: 1} }
	for name, c := range map[string]struct {
		after  time.Duration
		change func(*workerlease.Options)
	}{
		"plain":            {time.Minute, func(*workerlease.Options) {}},
		"continuous":       {time.Minute, func(o *workerlease.Options) { o.Continuous = true }},
		"failover":         {time.Minute, func(o *workerlease.Options) { o.FailoverWithin = 20 * time.Second }},
		"group":            {time.Minute, func(o *workerlease.Options) { o.Group = "g" }},
		"job":              {time.Minute, job},
		"job, in the lead": {4*time.Minute + 55*time.Second, job},
	} {
		for _, last := range []string{"event.Claimed", "event.Allocated"} {
			bubble(t, name+", "+last, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				ledger := struck(t, inner.Handle(), func(faultstore.Call) faultstore.Fault { return faultstore.Fault{After: 5 * time.Millisecond} })
				ctx, cancel := context.WithCancel(t.Context())
				told := map[string]int{}
				client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: event.ObserverFunc(func(e event.Event) {
					what := fmt.Sprintf("%T", e)
					told[what]++
					if what == last {
						cancel()
						time.Sleep(1) // Its caller goes on.
					}
				})})
				o := named("a", 0)
				c.change(&o)
				at(c.after)
				claim, err := client.TryClaim(ctx, o)
				synctest.Wait()
				head := newest(t, inner)
				if told[last] != 1 || told["event.Missed"] > 0 {
					t.Errorf("it told %v, want %s once, and nothing missed", told, last)
				}
				switch {
				case claim != nil && last == "event.Allocated":
					must(t, claim.Release(t.Context()))
				case claim != nil, !errors.Is(err, context.Canceled), head.Attempt > 0, head.Kind != store.KindRelease && o.Group == "":
					t.Errorf("TryClaim() = %v, %v, and the head is %+v, want no claim, and that it was given back", claim, err, head)
				}
			})
		}
	}
}
