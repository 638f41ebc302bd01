package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// Code that waits for nothing keeps the simulation at one instant. It is named.
func TestWhoSpinsAtOneInstantIsNamed(t *testing.T) {
	said := ""
	sim.Run(t, sim.Options{Seed: 3, Workers: 1, Length: 2 * time.Minute, Callbacks: func(p *sim.Process) workerlease.Callbacks {
		return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) {
			if said != "" {
				return
			}
			defer func() { said = fmt.Sprint(recover()) }()
			for ctx.Err() == nil {
				p.Clock().Now()
			}
		}}
	}})
	if want := "sim: seed 3: w0.0 spins"; !strings.HasPrefix(said, want) {
		t.Errorf("of code that spins was said %q, want %q…", said, want)
	}
}

// greedy reads what it is asked for over and over.
type greedy struct{ store.Ledger }

func (g greedy) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	for range 1000 {
		if _, _, err := g.Ledger.Tail(ctx, workerType, limit); err != nil {
			return nil, store.Stamp{}, err
		}
	}
	return g.Ledger.Tail(ctx, workerType, limit)
}

// A process that calls the store without end would make a run last as long. It is told of, and crashes.
func TestWhoReadsWithoutEndCrashes(t *testing.T) {
	r := sim.Run(t, sim.Options{
		Workers: 1, Length: 20 * time.Minute, Faults: sim.Faults{Latency: time.Millisecond},
		Client: func(l store.Ledger, o workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(greedy{l}, o)
		},
	})
	if len(r.Violations) == 0 || !strings.Contains(r.Violations[0], "reads more than") || r.Struck[sim.Crash] == 0 {
		t.Errorf("of a worker that reads without end is said %v, and %d crashed", r.Violations, r.Struck[sim.Crash])
	}
}
