package faultstore_test

import (
	"context"
	"errors"
	"maps"
	"testing"
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
		for _, c := range []struct {
			fault faultstore.Fault
			want  error
		}{{faultstore.Failure(), faultstore.ErrInjected}, {faultstore.LostReply(), faultstore.ErrInjected}, {faultstore.LandsLate(time.Second), faultstore.ErrInjected}, {}} {
			counter := faultstore.NewCounter(memory.New(memory.Options{}))
			l := faultstore.New(counter, faultstore.Options{Plan: func(got faultstore.Call) faultstore.Fault {
				if got.Op != op || got.WorkerType != "job" || got.N != 1 {
					t.Errorf("Plan(%+v), want the first %s of job", got, op)
				}
				return c.fault
			}})
			if err := call(t.Context(), l); !errors.Is(err, c.want) {
				t.Errorf("%s with %+v = %v, want %v", op, c.fault, err, c.want)
			}
			if n, want := counter.Counts()[op], c.fault.Effect == faultstore.Applied; (n == 1) != want || l.Pending() != 0 {
				t.Errorf("%s with %+v was applied %d times, want that it was: %v; %d pending", op, c.fault, n, want, l.Pending())
			}
			_ = l.Close(context.WithoutCancel(t.Context()))
		}
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
