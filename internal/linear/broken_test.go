package linear_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// broken is a ledger that does one operation wrong: reads and appends every tenth time
// that it could, trims always.
type broken struct {
	store.Ledger
	operation string
	n         *atomic.Int64
}

func (b broken) wrong(operation string) bool {
	return b.operation == operation && b.n.Add(1)%10 == 0
}

// Append acknowledges a record whose key is taken.
func (b broken) Append(ctx context.Context, r store.Record) error {
	err := b.Ledger.Append(ctx, r)
	if errors.Is(err, store.ErrConflict) && b.wrong("append") {
		return nil
	}
	return err
}

// Get returns another token.
func (b broken) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := b.Ledger.Get(ctx, workerType, seq)
	if b.wrong("get") {
		r.Token++
	}
	return r, err
}

// Tail lacks a record in the middle.
func (b broken) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := b.Ledger.Tail(ctx, workerType, limit)
	if len(records) > 2 && b.wrong("tail") {
		records = append(records[:1:1], records[2:]...)
	}
	return records, stamp, err
}

// Trim deletes one too many.
func (b broken) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if b.operation == "trim" {
		before++
	}
	return b.Ledger.Trim(ctx, workerType, before)
}

// Whatever else a ledger may do wrong is in TestCheckJudgesSmallHistories.
func TestBrokenLedgersAreFoundIllegal(t *testing.T) {
	for operation, plan := range map[string]workload.Plan{
		"append": workload.Round(0, 50, 80),
		"get":    workload.Round(0, 50, 80),
		"tail":   workload.Round(2, 50, 80),
		"trim":   workload.Round(3, 50, 200),
	} {
		t.Run(operation, func(t *testing.T) {
			// Not every round meets the fault where it shows.
			for round := range 50 {
				var h *linear.History
				synctest.Test(t, func(t *testing.T) { // There, clients meet however busy the machine is.
					l := jostled(broken{memory.New(memory.Options{}), operation, &atomic.Int64{}})
					h = compete(t, plan, uint64(round), func(string) store.Ledger { return l })
				})
				result, err := h.Check(patience)
				if err == nil {
					continue
				}
				if !errors.Is(err, linear.ErrIllegal) || len(result.Violations) == 0 {
					t.Fatalf("Check() = %+v, %v, want ErrIllegal", result, err)
				}
				if !strings.Contains(err.Error(), "no explanation for: ") {
					t.Errorf("Check() = %v, want it to say what has no explanation", err)
				}
				t.Logf("round %d: %v", round, err)
				return
			}
			t.Error("50 rounds are linearizable, want ErrIllegal")
		})
	}
}
