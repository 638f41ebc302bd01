package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// A client that had no worker for long samples the time before a new one decides anything,
// since what it knows is off by what the clocks have drifted apart meanwhile.
func TestAWorkerOfAnIdleClientKnowsTheTimeBeforeItAims(t *testing.T) {
	for _, c := range []struct {
		idle time.Duration
		ppm  int
	}{
		{24 * time.Hour, 20}, {24 * time.Hour, -20}, {30 * 24 * time.Hour, 500}, {30 * 24 * time.Hour, -500},
	} {
		// Right before and right after a boundary, the guess would be on the other side of it.
		for _, to := range []time.Duration{-4 * time.Second, time.Second} {
			bubble(t, fmt.Sprintf("%v %v ppm %v", c.idle, c.ppm, to), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clocks.Drifting(clock.New(), c.ppm)})
				try := func() *workerlease.Claim {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
					defer cancel()
					claim, err := client.TryClaim(ctx, named("try", 0))
					if err != nil && !errors.Is(err, workerlease.ErrNotClaimed) {
						t.Fatal(err)
					}
					return claim
				}
				if claim := try(); claim != nil {
					_ = claim.Release(t.Context())
				}
				at(c.idle + to)
				if to > 0 {
					w := start(t, setup{client: client, ledger: ledger, Options: named("started", 0)})
					time.Sleep(2 * time.Second)
					if h := w.history(); len(h) > 0 {
						t.Errorf("works in mid-slot, in %v", h[0].lease.Slot)
					}
					w.stop(t)
				}
				began := time.Now()
				claim := try()
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("TryClaim took %v, want it at once", took)
				}
				if claim == nil {
					t.Fatal("the slot was refused, and is free")
				}
				slot := claim.Lease.Slot
				if now := time.Now(); now.Before(slot.Start) || !now.Before(slot.End) {
					t.Errorf("claimed %v, want the slot of now, %v", slot, now)
				}
				_ = claim.Release(t.Context())
			})
		}
	}
}
