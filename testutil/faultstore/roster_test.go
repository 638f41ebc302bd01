package faultstore_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// ledgerAlone keeps no roster.
type ledgerAlone struct{ store.Ledger }

// rosterCalls are the operations of a roster.
var rosterCalls = map[faultstore.Op]func(ctx context.Context, r store.Roster) error{
	faultstore.OpAttend: func(ctx context.Context, r store.Roster) error {
		return r.Attend(ctx, []store.Presence{storetest.Presence("job", "b")})
	},
	faultstore.OpLeave:     func(ctx context.Context, r store.Roster) error { return r.Leave(ctx, "job", []string{"a"}) },
	faultstore.OpPresences: func(ctx context.Context, r store.Roster) error { _, err := r.Presences(ctx, "job"); return err },
}

func TestALedgerWithoutARosterHasNoneWithFaultsEither(t *testing.T) {
	inner := ledgerAlone{memory.New(memory.Options{})}
	counter := faultstore.NewCounter(inner)
	asked := 0
	faults := faultstore.New(inner, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault { asked++; return faultstore.Failure() }})
	for op, call := range rosterCalls {
		for _, r := range []store.Roster{counter, faults} {
			if err := call(t.Context(), r); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s of %T = %v, want errors.ErrUnsupported", op, r, err)
			}
		}
	}
	if counts := counter.Counts(); len(counts) != 0 || asked != 0 {
		t.Errorf("Counts() = %v, and Plan was called %d times, want neither", counts, asked)
	}
}

func TestPagesAreCountedFailAndAreStale(t *testing.T) {
	m := memory.New(memory.Options{})
	for seq := int64(1); seq <= 5; seq++ {
		m.Put(storetest.Grant("job", seq))
	}
	var next faultstore.Fault
	counter := faultstore.NewCounter(m)
	l := faultstore.New(counter, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
		if c.Op == faultstore.OpPage && (c.WorkerType != "job" || c.Seq != 2) {
			t.Errorf("Plan(%+v), want the type job and the Seq 2", c)
		}
		return next
	}})
	for name, c := range map[string]struct {
		fault faultstore.Fault
		want  int
		err   error
	}{
		"none":    {faultstore.Fault{}, 3, nil},
		"failure": {faultstore.Failure(), 0, faultstore.ErrInjected},
		"stale":   {faultstore.Fault{HideNewest: 2}, 1, nil},
	} {
		next = c.fault
		counter.Reset()
		got, err := l.Page(t.Context(), "job", 2, 9)
		if len(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: Page(job, 2, 9) = %d records, %v, want %d, %v", name, len(got), err, c.want, c.err)
		}
		if n := counter.Counts()[faultstore.OpPage]; (n == 1) != (c.err == nil) {
			t.Errorf("%s: %d pages were counted", name, n)
		}
	}
	for _, p := range []store.Pager{faultstore.NewCounter(ledgerAlone{m}), faultstore.New(ledgerAlone{m}, faultstore.Options{})} {
		if _, err := p.Page(t.Context(), "job", 0, 9); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Page() of %T of a ledger without pages = %v, want errors.ErrUnsupported", p, err)
		}
	}
}

func TestRosterOperationsMeetTheirOwnFaults(t *testing.T) {
	for op, call := range rosterCalls {
		t.Run(string(op), func(t *testing.T) {
			for name, c := range map[string]struct {
				fault   faultstore.Fault
				want    error
				applied bool
				kind    faultstore.FaultKind
			}{
				"failure":    {faultstore.Failure(), faultstore.ErrInjected, false, faultstore.KindFailure},
				"lost reply": {faultstore.LostReply(), faultstore.ErrInjected, true, faultstore.KindLostReply},
				"throttled":  {faultstore.Throttled(time.Second), store.ErrThrottled, false, faultstore.KindThrottled},
				"late":       {faultstore.LandsLate(time.Second), faultstore.ErrInjected, false, ""},
				"none":       {faultstore.Fault{}, nil, true, ""},
			} {
				inner := memory.New(memory.Options{})
				if err := inner.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}); err != nil {
					t.Fatal(err)
				}
				var calls []faultstore.Op
				l := faultstore.New(inner.Handle(), faultstore.Options{Plan: func(got faultstore.Call) faultstore.Fault {
					calls = append(calls, got.Op)
					if got.Op != op || got.WorkerType != "job" || got.N != 1 {
						t.Errorf("Plan(%+v), want the first %s of job", got, op)
					}
					return c.fault
				}})
				if err := call(t.Context(), l); !errors.Is(err, c.want) {
					t.Errorf("%s with %s = %v, want %v", op, name, err, c.want)
				}
				if got := l.Struck(); c.kind != "" && got[c.kind] != 1 || len(calls) != 1 {
					t.Errorf("%s with %s: Struck() = %v, calls %v, want one %s", op, name, got, calls, c.kind)
				}
				ids := map[string]bool{"a": true}
				if c.applied && op == faultstore.OpAttend {
					ids["b"] = true
				}
				if c.applied && op == faultstore.OpLeave {
					delete(ids, "a")
				}
				got := map[string]bool{}
				all, err := inner.Presences(t.Context(), "job")
				for _, p := range all {
					got[p.ID] = true
				}
				if err != nil || !maps.Equal(got, ids) || l.Pending() != 0 {
					t.Errorf("%s with %s left %v, %v, %d pending, want %v", op, name, got, err, l.Pending(), ids)
				}
				_ = l.Close(context.WithoutCancel(t.Context()))
			}
		})
	}
}

func TestABlackHoleKeepsTheCallerOfARoster(t *testing.T) {
	for op, call := range rosterCalls {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
				defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
				l.Break(faultstore.BlackHole(faultstore.Dropped))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				if err := call(ctx, l); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
					t.Errorf("%s in a black hole = %v after %v, want the end of its context", op, err, time.Since(began))
				}
				l.Break(faultstore.Down())
				if err := call(t.Context(), l); !errors.Is(err, faultstore.ErrDown) {
					t.Errorf("%s during an outage = %v, want ErrDown", op, err)
				}
				l.Mend()
				if err := call(t.Context(), l); err != nil {
					t.Errorf("%s after the outage = %v, want nil", op, err)
				}
			})
		})
	}
}

func TestACounterCountsTheOperationsOfARoster(t *testing.T) {
	c := faultstore.NewCounter(memory.New(memory.Options{}))
	for _, err := range []error{
		c.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a"), storetest.Presence("job", "b")}),
		c.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a"), storetest.Presence("mail", "b")}),
		c.Leave(t.Context(), "job", []string{"a"}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, err := c.Presences(t.Context(), ""); err != nil || len(got) != 2 {
		t.Errorf("Presences() = %+v, %v, want two", got, err)
	}
	if want := (map[faultstore.Op]int{faultstore.OpAttend: 2, faultstore.OpLeave: 1, faultstore.OpPresences: 1}); !maps.Equal(c.Counts(), want) {
		t.Errorf("Counts() = %v, want %v", c.Counts(), want)
	}
	for i, want := range []faultstore.Entry{
		{Op: faultstore.OpAttend, WorkerType: "job", Seq: 2},
		{Op: faultstore.OpAttend, Seq: 2},
		{Op: faultstore.OpLeave, WorkerType: "job", Seq: 1},
		{Op: faultstore.OpPresences},
	} {
		if got := c.Log()[i]; got.Op != want.Op || got.WorkerType != want.WorkerType || got.Seq != want.Seq || got.Err != nil {
			t.Errorf("Log()[%d] = %+v, want %+v", i, got, want)
		}
	}
}
