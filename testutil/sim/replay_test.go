package sim_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/testutil/sim"
)

// Nothing but the seed decides: not the number of processors, nor the order in
// which goroutines happen to run.
func TestASeedReplaysExactly(t *testing.T) {
	for seed := range fewer(50) {
		o := sim.Random(seed)
		o.Length, o.Trace = time.Hour, true
		var traces [2]string
		for i := range traces {
			was := runtime.GOMAXPROCS(i + 1)
			traces[i] = sim.Run(t, o).Trace
			runtime.GOMAXPROCS(was)
		}
		if d := cmp.Diff(strings.Split(traces[0], "\n"), strings.Split(traces[1], "\n")); d != "" {
			t.Errorf("seed %d gave two traces (-1 processor, +2):\n%s", seed, d)
		}
		if strings.Count(traces[0], "LeaseAllocated") == 0 {
			t.Errorf("seed %d: no leases", seed)
		}
	}
}
