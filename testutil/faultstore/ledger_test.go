package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestTheContractIsKept(t *testing.T) {
	slow := faultstore.Random(1, faultstore.Rates{Latency: 50 * time.Microsecond})
	for name, c := range map[string]struct {
		wrap   func(l store.Ledger) store.Ledger
		rounds int
	}{
		"without faults": {func(l store.Ledger) store.Ledger { return faultstore.New(l, faultstore.Options{}) }, 100},
		"with latency":   {func(l store.Ledger) store.Ledger { return faultstore.New(l, faultstore.Options{Plan: slow}) }, 20},
		"by a counter":   {func(l store.Ledger) store.Ledger { return faultstore.NewCounter(l) }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(*testing.T) storetest.Harness {
				m := memory.New(memory.Options{})
				return storetest.Harness{
					FreeStamp: true,
					Skips: map[string]string{
						"readers": "all handles may write", "attendance/a reader*": "all handles may write",
						"attendance/a planted presence*": "presences are Go values, so all can be read",
						"two paths":                      "there is one",
						"foreign constraints":            "nobody else gives it any",
					},
					Rounds: c.rounds,
					Open:   func(testing.TB) store.Ledger { return c.wrap(m.Handle()) },
					Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
						m.Put(storetest.Decode(workerType, seq, fields))
					},
				}
			})
		})
	}
}

// script meets the first calls with the faults given, the rest with none.
func script(faults ...faultstore.Fault) func(faultstore.Call) faultstore.Fault {
	return func(c faultstore.Call) faultstore.Fault {
		if c.N <= int64(len(faults)) {
			return faults[c.N-1]
		}
		return faultstore.Fault{}
	}
}

// pair is a memory ledger with n records of "job", and the same with faults.
func pair(t *testing.T, n int64, o faultstore.Options) (*memory.Ledger, *faultstore.Ledger) {
	t.Helper()
	inner := memory.New(memory.Options{})
	for seq := int64(1); seq <= n; seq++ {
		if err := inner.Append(t.Context(), storetest.Grant("job", seq)); err != nil {
			t.Fatal(err)
		}
	}
	l := faultstore.New(inner.Handle(), o)
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
	})
	return inner, l
}

func stored(t *testing.T, l store.Ledger, seq int64) bool {
	t.Helper()
	_, err := l.Get(context.WithoutCancel(t.Context()), "job", seq)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Get(job, %d) = %v, want a record or ErrNotFound", seq, err)
	}
	return err == nil
}

// kinds counts faults by kind.
type kinds = map[faultstore.FaultKind]int

func wantStruck(t *testing.T, l *faultstore.Ledger, want kinds) {
	t.Helper()
	if got := l.Struck(); !maps.Equal(got, want) {
		t.Errorf("Struck() = %v, want %v", got, want)
	}
}

func TestAppendMeetsItsFault(t *testing.T) {
	own := errors.New("a refusal of one's own")
	for name, c := range map[string]struct {
		fault  faultstore.Fault
		want   error
		took   time.Duration
		stored bool // As soon as Append has returned.
		struck kinds
	}{
		"no fault":              {stored: true},
		"latency on both sides": {fault: faultstore.Fault{Before: time.Second, After: 2 * time.Second}, took: 3 * time.Second, stored: true, struck: kinds{faultstore.KindLatency: 2}},
		"the deadline passes before the effect": {
			fault: faultstore.Fault{Before: time.Minute}, want: context.DeadlineExceeded, took: 10 * time.Second, struck: kinds{faultstore.KindLatency: 1},
		},
		"the deadline passes after the effect": {
			fault: faultstore.Fault{Before: time.Second, After: time.Minute}, want: context.DeadlineExceeded, took: 10 * time.Second, stored: true, struck: kinds{faultstore.KindLatency: 2},
		},
		"failure":                            {fault: faultstore.Failure(), want: faultstore.ErrInjected, struck: kinds{faultstore.KindFailure: 1}},
		"failure with an error of one's own": {fault: faultstore.Fault{Effect: faultstore.Dropped, Err: own}, want: own, struck: kinds{faultstore.KindFailure: 1}},
		"lost reply":                         {fault: faultstore.LostReply(), want: faultstore.ErrInjected, stored: true, struck: kinds{faultstore.KindLostReply: 1}},
		"conflict with one's own append":     {fault: faultstore.OwnConflict(), want: store.ErrConflict, stored: true, struck: kinds{faultstore.KindOwnConflict: 1}},
		"black hole after the effect": {
			fault: faultstore.BlackHole(faultstore.Applied), want: context.DeadlineExceeded, took: 10 * time.Second, stored: true, struck: kinds{faultstore.KindBlackHole: 1},
		},
		"black hole before the effect": {
			fault: faultstore.BlackHole(faultstore.Dropped), want: context.DeadlineExceeded, took: 10 * time.Second, struck: kinds{faultstore.KindBlackHole: 1},
		},
		"throttling": {fault: faultstore.Throttled(3 * time.Second), want: store.ErrThrottled, struck: kinds{faultstore.KindThrottled: 1, faultstore.KindFailure: 1}},
		"put off":    {fault: faultstore.LandsLate(time.Hour), want: faultstore.ErrInjected, struck: kinds{faultstore.KindLate: 1}},
		"put off, and landed while the caller still waits": {
			fault: faultstore.Fault{Effect: faultstore.Late, LateBy: time.Second, After: 2 * time.Second}, want: faultstore.ErrInjected, took: 2 * time.Second, stored: true,
			struck: kinds{faultstore.KindLatency: 1, faultstore.KindLate: 1, faultstore.KindLanded: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, l := pair(t, 0, faultstore.Options{Plan: script(c.fault)})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				err := l.Append(ctx, storetest.Grant("job", 1))
				if !errors.Is(err, c.want) {
					t.Errorf("Append() = %v, want %v", err, c.want)
				}
				if e, ok := errors.AsType[*store.ThrottledError](err); ok && e.RetryAfter != 3*time.Second {
					t.Errorf("Append() = %v, want a ThrottledError with RetryAfter 3s", err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("Append() took %v, want %v", took, c.took)
				}
				if got := stored(t, inner, 1); got != c.stored {
					t.Errorf("stored = %v, want %v", got, c.stored)
				}
				wantStruck(t, l, c.struck)
				if err := l.Append(t.Context(), storetest.Grant("job", 2)); err != nil {
					t.Errorf("Append(), the next one = %v, want nil", err)
				}
			})
		})
	}
}

func TestEveryOperationMeetsFaults(t *testing.T) {
	for _, f := range []faultstore.Fault{faultstore.Failure(), faultstore.LostReply(), faultstore.LandsLate(1)} {
		_, l := pair(t, 3, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault { return f }})
		ctx := t.Context()
		_, get := l.Get(ctx, "job", 1)
		_, _, tail := l.Tail(ctx, "job", 1)
		_, trim := l.Trim(ctx, "job", 1)
		_, types := l.WorkerTypes(ctx)
		_, now := l.Now(ctx)
		for op, err := range map[string]error{
			"Init": l.Init(ctx), "Append": l.Append(ctx, storetest.Grant("job", 9)),
			"Get": get, "Tail": tail, "Trim": trim, "WorkerTypes": types, "Now": now,
		} {
			if !errors.Is(err, faultstore.ErrInjected) {
				t.Errorf("%s with %+v = %v, want ErrInjected", op, f, err)
			}
		}
	}
}

func TestPlanSeesTheCall(t *testing.T) {
	var calls []faultstore.Call
	_, l := pair(t, 1, faultstore.Options{
		Caller: "w1",
		Plan:   func(c faultstore.Call) faultstore.Fault { calls = append(calls, c); return faultstore.Fault{} },
	})
	r := storetest.Grant("job", 2)
	if err := l.Append(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	stored(t, l, 2)
	stored(t, l, 3)
	if _, _, err := l.Tail(t.Context(), "other", 1); err != nil {
		t.Fatal(err)
	}
	bad := r
	bad.Token = 0
	if err := l.Append(t.Context(), bad); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Append of an invalid record = %v, want ErrInvalid", err)
	}
	want := []faultstore.Call{
		{Caller: "w1", Op: faultstore.OpAppend, WorkerType: "job", Seq: 2, N: 1, Record: r},
		{Caller: "w1", Op: faultstore.OpGet, WorkerType: "job", Seq: 2, N: 1},
		{Caller: "w1", Op: faultstore.OpGet, WorkerType: "job", Seq: 3, N: 2},
		{Caller: "w1", Op: faultstore.OpTail, WorkerType: "other", N: 1},
	}
	for i := range calls {
		calls[i].At = time.Time{}
	}
	if !slices.Equal(calls, want) {
		t.Errorf("Plan saw %+v, want %+v", calls, want)
	}
}

func TestAnOutageLastsUntilItIsMended(t *testing.T) {
	asked := 0
	inner, l := pair(t, 1, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault { asked++; return faultstore.Fault{} }})
	l.Break(faultstore.Down())
	for range 3 {
		if err := l.Append(t.Context(), storetest.Grant("job", 2)); !errors.Is(err, faultstore.ErrDown) {
			t.Errorf("Append() in an outage = %v, want ErrDown", err)
		}
	}
	if stored(t, inner, 2) || asked != 0 {
		t.Errorf("in an outage: stored, or Plan asked %d times, want neither", asked)
	}
	l.Break(faultstore.LostReply())
	if err := l.Append(t.Context(), storetest.Grant("job", 2)); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("Append() in another outage = %v, want ErrInjected", err)
	}
	l.Mend()
	if !stored(t, l, 2) || asked != 1 {
		t.Errorf("after Mend: not stored, or Plan asked %d times, want 1", asked)
	}
	wantStruck(t, l, kinds{faultstore.KindOutage: 4, faultstore.KindFailure: 3, faultstore.KindLostReply: 1})
}

func TestStampsShift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := pair(t, 1, faultstore.Options{Plan: script(faultstore.OtherServer("b", -time.Hour))})
		began := time.Now()
		want := func(what string, s store.Stamp, ahead time.Duration, server string) {
			t.Helper()
			if !s.Time.Equal(began.Add(ahead)) || s.Server != server {
				t.Errorf("%s: stamp %v by %q, want %v by %q", what, s.Time, s.Server, began.Add(ahead), server)
			}
		}
		now := func() store.Stamp {
			s, err := l.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		want("by a fault", now(), -time.Hour, "b")
		_, s, err := l.Tail(t.Context(), "job", 1)
		if err != nil {
			t.Fatal(err)
		}
		want("a tail's, by a fault", s, -time.Hour, "b")
		want("after the fault", now(), 0, "memory")
		l.Shift(90*time.Second+time.Nanosecond, "c")
		want("after a jump, truncated", now(), 90*time.Second, "c")
		l.Shift(0, "")
		want("after the jump back", now(), 0, "memory")
		wantStruck(t, l, kinds{faultstore.KindStamp: 3})
	})
}

// What another operation failed by, as in an errgroup, isn't the outcome of one that it ended.
func TestTheCauseOfAnEndIsNoOutcome(t *testing.T) {
	for _, outcome := range []error{
		store.ErrConflict, store.ErrNotFound, store.ErrNotStored, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing, store.ErrClosed,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("of another: %w", outcome))
		l := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		if _, err := l.Now(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, outcome) || !strings.Contains(err.Error(), "of another") {
			t.Errorf("Now() after an end by %v = %v, want context.Canceled, which says why", outcome, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.EOF)
	if _, err := faultstore.New(memory.New(memory.Options{}), faultstore.Options{}).Now(ctx); !errors.Is(err, io.EOF) || !errors.Is(err, context.Canceled) {
		t.Errorf("Now() after another end = %v, want its cause", err)
	}
}
