package workerlease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// billed is a ledger that bills every request and, with an append, shows its clock.
type billed struct {
	store.Ledger
	fails error
}

func (b billed) Append(ctx context.Context, r store.Record) error {
	store.Charge(ctx, 2)
	store.Charge(ctx, 3.5) // a second try
	if b.fails != nil {
		return b.fails
	}
	err := b.Ledger.Append(ctx, r)
	if s, clockErr := b.Ledger.Now(ctx); clockErr == nil {
		store.Tell(ctx, s)
	}
	return err
}

func (b billed) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	store.Charge(ctx, 1)
	return b.Ledger.Tail(ctx, workerType, limit)
}

func (b billed) Now(ctx context.Context) (store.Stamp, error) {
	store.Charge(ctx, 0.5)
	return b.Ledger.Now(ctx)
}

func TestWhatTheStoreChargesIsSummedByOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: billed{Ledger: memory.New(memory.Options{})}, Options: named("w", 0)})
		at(11 * time.Minute)
		want := workerlease.Charges{}
		for _, e := range observed[workerlease.Charged](w) {
			want[e.Operation] += e.Units
		}
		got := w.Status().Charges
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Status().Charges differ from the sums of the events (-events +status):\n%s", diff)
		}
		appends := len(observed[workerlease.Claimed](w))
		if appends == 0 || got["append"] != 5.5*float64(appends) || got["tail"] < 1 || got["now"] < 0.5 {
			t.Errorf("Status().Charges = %v after %d appends at 5.5", got, appends)
		}
		names := w.names(6 * time.Minute)
		if i := slices.Index(names, "Claimed"); i < 2 || !slices.Equal(names[i-2:i], []string{"ClockSample", "Charged"}) {
			t.Errorf("events = %q, want a sample of the clock that the append showed, and its charge, before Claimed", names)
		}
		if sum := got["append"] + got["tail"] + got["now"]; got.Total() != sum {
			t.Errorf("Total() = %v, want %v", got.Total(), sum)
		}
		got["append"] = 0
		if w.Status().Charges["append"] == 0 {
			t.Error("the caller's copy of the charges is the worker's own")
		}
	})
}

func TestAFailedOperationIsChargedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: billed{memory.New(memory.Options{}), errors.New("no reply")}, Options: named("w", 0)})
		at(6 * time.Minute)
		if got := w.Status(); got.Charges["append"] < 5.5 || got.Allocated > 0 {
			t.Errorf("Status() = %v, %v, want failed appends charged", got, got.Charges)
		}
	})
}

func TestAStoreThatBillsNothingHasNoCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{ledger: memory.New(memory.Options{}), Options: named("w", 0)})
		at(6 * time.Minute)
		if got := w.Status().Charges; got != nil || len(observed[workerlease.Charged](w)) > 0 {
			t.Errorf("Status().Charges = %v, want none", got)
		}
	})
}
