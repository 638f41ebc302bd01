package sim_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// exporter is the code under test: while it has a lease, it exports something
// every ten seconds.
type exporter struct {
	process *sim.Process
	exports *atomic.Int64
}

func (e exporter) allocated(ctx context.Context, l workerlease.Lease) {
	tick := e.process.Clock().Timer(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !l.Valid() {
			return
		}
		e.process.Work(l) // Nobody else may be at it now: the world checks.
		e.exports.Add(1)
		tick = e.process.Clock().Timer(10 * time.Second)
	}
}

// A handler is run by five workers for a day, whose store goes down, whose
// processes crash and are suspended, and whose clocks are wrong.
func ExampleRun() {
	inTest(func(t *testing.T) { // In a test of your own, t is there already.
		var exports atomic.Int64
		r := sim.Run(t, sim.Options{
			Seed: 1, Workers: 5, Length: 24 * time.Hour,
			Callbacks: func(p *sim.Process) workerlease.Callbacks {
				return workerlease.Callbacks{LeaseAllocated: exporter{p, &exports}.allocated}
			},
			Faults: sim.Faults{
				Latency: 50 * time.Millisecond, LostReply: 0.1,
				Outages: 4 * time.Hour, Restarts: time.Hour, Stalls: time.Hour,
				Skew: 100 * time.Millisecond, Drift: 0.001, WallSteps: time.Hour,
			},
		})
		r.Check(t)
		fmt.Println("violations:", len(r.Violations))
		fmt.Println("crashes:", r.Struck[sim.Crash] > 20)
		fmt.Println("leases:", len(r.Leases) > 24*60*9/10)
		fmt.Println("exports:", exports.Load() > 24*60*4)
	})
	// Output:
	// violations: 0
	// crashes: true
	// leases: true
	// exports: true
}

// inTest calls f as a test.
func inTest(f func(*testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: "TestExporter", F: f}})
}
