package charges

import (
	"context"
	"errors"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// failing is a ledger that charges for a read, and then fails. Its sums need rounding.
type failing struct{ store.Ledger }

func (failing) Tail(ctx context.Context, _ string, _ int) ([]store.Record, store.Stamp, error) {
	store.Charge(ctx, 2.1)
	store.Charge(ctx, 0.1)
	return nil, store.Stamp{}, errors.New("no reply")
}

func TestAReadThatFailedIsChargedToo(t *testing.T) {
	l := &Ledger{Ledger: failing{memory.New(memory.Options{})}}
	for range 3 {
		if _, _, err := l.Tail(t.Context(), "export", 1); err == nil {
			t.Fatal("Tail() = nil, want an error")
		}
	}
	if got := Round(l.Charges().Total()); got != 6.6 {
		t.Errorf("Charges() = %v, want 6.6", got)
	}
}
