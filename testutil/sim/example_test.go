package sim_test

import (
	"context"
	"flag"
	"fmt"
	"os"
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
	for e.wait(ctx, 10*time.Second) && l.Valid() {
		e.process.Work(l) // Nobody else may be at it now: the world checks.
		e.exports.Add(1)
	}
}

// wait waits by the process's own clock, and reports whether the lease lives.
func (e exporter) wait(ctx context.Context, d time.Duration) bool {
	timer := e.process.Clock().Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Five workers run a handler for a day. The store has outages, processes crash and are
// suspended, and clocks are wrong. Each seed is a different run.
func ExampleRun() {
	var results []*sim.Result
	var exports atomic.Int64
	inTest(func(t *testing.T) { // In a test of your own, t is there already.
		for seed := range int64(2) {
			r := sim.Run(t, sim.Options{
				Seed: seed, Workers: 5, Length: 24 * time.Hour,
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
			results = append(results, r)
		}
	})
	for _, r := range results {
		fmt.Println("violations:", len(r.Violations), "many crashes:", r.Struck[sim.Crash] > 20, "many leases:", len(r.Leases) > 24*60*9/10)
	}
	fmt.Println("many exports:", exports.Load() > 2*24*60*4)
	// Output:
	// violations: 0 many crashes: true many leases: true
	// violations: 0 many crashes: true many leases: true
	// many exports: true
}

// inTest calls f as a test, without output.
func inTest(f func(*testing.T)) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	if null, err := os.Open(os.DevNull); err == nil {
		defer func() { _ = null.Close() }()
		os.Stdout = null
	}
	// Which tests are run, and which are left out, is said of this example, not of what is in it.
	if skip := flag.Lookup("test.skip"); skip != nil {
		defer func(was string) { _ = skip.Value.Set(was) }(skip.Value.String())
		_ = skip.Value.Set("")
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(all, []testing.InternalTest{{Name: "TestExporter", F: f}})
}
