package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// hasty reads several times where once is enough.
type hasty struct {
	store.Ledger
	times int
}

func (h hasty) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	for range h.times - 1 {
		_, _, _ = h.Ledger.Tail(ctx, workerType, limit)
	}
	return h.Ledger.Tail(ctx, workerType, limit)
}

func TestAWorkerThatReadsMoreThanTwiceASecondIsNoticed(t *testing.T) {
	for times, want := range map[int]bool{1: false, 200: true} {
		r := sim.Run(t, sim.Options{
			Seed: 1, Faults: sim.Faults{Latency: 10 * time.Millisecond, Outages: 10 * time.Minute},
			Client: func(l store.Ledger, o workerlease.ClientOptions) *workerlease.Client {
				return workerlease.NewClient(hasty{l, times}, o)
			},
		})
		if got := strings.Contains(strings.Join(r.Violations, "\n"), "reads more than 120 times in 1m0s"); got != want {
			t.Errorf("%d reads in place of one: noticed is %v, want %v: %v", times, got, want, r.Violations)
		}
	}
}
