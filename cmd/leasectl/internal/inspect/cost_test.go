package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// priced is a ledger that charges for being looked at, and gives no time with a
// tail. Its sums need rounding.
type priced struct{ store.Ledger }

func (p priced) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	store.Charge(ctx, 2.1)
	store.Charge(ctx, 0.1)
	records, _, err := p.Ledger.Tail(ctx, workerType, limit)
	return records, store.Stamp{}, err
}

func (p priced) Now(ctx context.Context) (store.Stamp, error) {
	store.Charge(ctx, 1)
	return p.Ledger.Now(ctx)
}

func (p priced) WorkerTypes(ctx context.Context) ([]string, error) {
	store.Charge(ctx, 2.9)
	return p.Ledger.WorkerTypes(ctx)
}

func TestInspectSlotsTellsWhatItCost(t *testing.T) {
	s := decoded(t, priced{Ledger: planted()}, 20)
	want := &charges.JSON{Total: 6.1, ByOperation: map[string]float64{"now": 1, "tail": 2.2, "workerTypes": 2.9}}
	if diff := cmp.Diff(want, s.Units); diff != "" {
		t.Errorf("requestUnits (-want +got):\n%s", diff)
	}

	const line = "\n\nlooking at it cost 6.10 request units: now 1.00, tail 2.20, workerTypes 2.90\n"
	for name, l := range map[string]store.Ledger{"planted": planted(), "empty": memory.New(memory.Options{})} {
		got, err := shown(t, priced{Ledger: l}, Options{WorkerType: "export", Last: 20, Timeout: time.Minute})
		want := strings.ReplaceAll(line, ", workerTypes 2.90", "")
		want = strings.ReplaceAll(want, "6.10", "3.20")
		if name == "empty" {
			want = line // it looks for others, too
		}
		if err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("inspect slots of the %s ledger = %q, %v, want it to end with %q", name, got, err, want)
		}
	}
}
