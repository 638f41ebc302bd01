package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// A program must be able to tell without reading text whether it may wait for the slot, and how long.
func TestWhyASlotIsNotClaimedIsTyped(t *testing.T) {
	bubble(t, "one after another", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.Job.MaxAttempts, o.Job.MinRetry = 3, 10*time.Second
		failing := func(n int) {
			t.Helper()
			claim := claimed(t, ledger.Handle(), o)
			if claim.Lease.Attempt != n {
				t.Errorf("claimed %+v, want attempt %d", claim.Lease, n)
			}
			claim.Lease.FailedWith(errWork)
			must(t, claim.Release(t.Context()))
		}
		refused := func(why workerlease.Reason, holder string) workerlease.NotClaimed {
			t.Helper()
			_, err := attempt(t, ledger.Handle(), o)
			n, ok := errors.AsType[*workerlease.NotClaimed](err)
			if !ok {
				t.Fatalf("TryClaim = %v, want a NotClaimed", err)
			}
			if !errors.Is(err, workerlease.ErrNotClaimed) || n.Why != why || n.Holder != holder || !n.Slot.Contains(time.Now()) {
				t.Errorf("TryClaim = %+v, want %q, by %q", n, why, holder)
			}
			return *n
		}
		at(6 * time.Minute)
		failing(1)
		if n := refused(workerlease.TooSoon, ""); n.Until.Before(time.Now()) || n.Until.After(time.Now().Add(11*time.Second)) {
			t.Errorf("not before %v, want some seconds", since(n.Until))
		}
		for n := 2; n <= 3; n++ {
			at(time.Duration(n+5) * time.Minute)
			failing(n)
		}
		refused(workerlease.UsedUp, "")
		at(11 * time.Minute)
		claim := claimed(t, ledger.Handle(), o)
		if n := refused(workerlease.HeldByAnother, "a"); !n.Until.Equal(claim.Lease.Expiry) {
			t.Errorf("held until %v, want %v", since(n.Until), since(claim.Lease.Expiry))
		}
		must(t, claim.Complete(t.Context()))
		refused(workerlease.AlreadyDone, "a")
		at(12 * time.Minute)
		refused(workerlease.AlreadyDone, "a") // It is free: nobody has it.
	})
}

// A claim that is cut has failed, as a task does: with its cause, and for good if it was the last attempt.
func TestAClaimThatIsCutIsAFailedAttempt(t *testing.T) {
	bubble(t, "by its time-out", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.Job.MaxAttempts, o.Job.Timeout = 1, time.Minute
		seen := &worker{}
		at(6 * time.Minute)
		claim, err := workerlease.NewClient(ledger.Handle(), workerlease.ClientOptions{Observer: seen}).TryClaim(t.Context(), o)
		must(t, err)
		held, _ := claim.RunIfHeld(t.Context(), func(ctx context.Context, _ workerlease.Lease) error {
			<-ctx.Done()
			claim.Fail(context.Cause(ctx))
			return nil
		})
		if took := time.Since(t0) - 6*time.Minute; !held || took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("it ran: %v, for %v, want a minute", held, took)
		}
		must(t, claim.Release(t.Context()))
		if e := observed[event.TaskFailed](seen); len(e) != 1 || e[0].Cause != store.TimedOut || !e[0].GivenUp {
			t.Errorf("%+v was reported, want the last attempt, timed out", e)
		}
		if o := told(t, ledger); len(o) != 1 || o[0].Cause != store.TimedOut || !o[0].GivenUp {
			t.Errorf("the ledger tells %+v, want that as well", o)
		}
	})
}

// Work that is told to end in time for the end of its lease was cut by that, also if it ends before.
func TestAClaimIsToldWhyItsWorkEndedEarly(t *testing.T) {
	cut := func(cause error) error { return fmt.Errorf("%w: signal 15", cause) }
	for name, test := range map[string]struct {
		job   *workerlease.Job
		err   error
		ended bool
		want  store.Cause
	}{
		"a job at the end of its slot":     {&workerlease.Job{Overrun: workerlease.Stop}, cut(workerlease.ErrLeaseExpired), false, store.SlotEnded},
		"a job that is stopped":            {&workerlease.Job{}, cut(workerlease.ErrStopped), false, store.Stopped},
		"a job that fails":                 {&workerlease.Job{}, errWork, false, ""},
		"other work":                       {nil, cut(workerlease.ErrLeaseExpired), false, store.SlotEnded},
		"other work whose lease has ended": {nil, errWork, true, store.SlotEnded},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			o.Job = test.job
			at(9*time.Minute + 55*time.Second)
			claim, err := workerlease.TryClaim(t.Context(), ledger.Handle(), o)
			must(t, err)
			_, _ = claim.RunIfHeld(t.Context(), func(ctx context.Context, _ workerlease.Lease) error {
				if test.ended {
					<-ctx.Done()
				}
				claim.Fail(test.err)
				return nil
			})
			must(t, claim.Release(t.Context()))
			if o := told(t, ledger); len(o) != 1 || o[0].Result != store.Failed || o[0].Cause != test.want {
				t.Errorf("the ledger tells %+v, want one failure by %q", o, test.want)
			}
		})
	}
}

// A claim that lands, and of which its worker hears only after its window, is made anew: most of the slot is left.
func TestAClaimThatCameTooLateIsMadeAnew(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var landed atomic.Int64
		link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			now := since(c.At)
			if landed.Load() == 0 && c.Op == faultstore.OpAppend {
				landed.Store(int64(now))
				return faultstore.LostReply()
			}
			if at := time.Duration(landed.Load()); at != 0 && now < at+35*time.Second {
				return faultstore.Down()
			}
			return faultstore.Fault{}
		}})
		o := perSlot("a", 0)
		o.FailoverWithin = 30 * time.Second
		at(5*time.Minute + time.Second)
		claim, err := workerlease.TryClaim(t.Context(), link, o)
		must(t, err)
		if claim.Lease.Attempt != 1 || time.Since(t0) > 6*time.Minute {
			t.Errorf("at %v it is attempt %d, want the first, in good time", time.Since(t0), claim.Lease.Attempt)
		}
		must(t, claim.Complete(t.Context()))
	})
}
