package linear_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
)

// clients is how many goroutines use one ledger in memory.
const clients = 6

// faults are those that a linearizable store may show.
var faults = faultstore.Rates{
	Latency: 5 * time.Millisecond,
	Slow:    0.03, SlowBy: 800 * time.Millisecond,
	Failure:     0.05,
	LostReply:   0.05,
	BlackHole:   0.03,
	Throttled:   0.02,
	OwnConflict: 0.05,
	Late:        0.06, LateBy: 2 * time.Second,
}

// compete lets clients work on ledgers of one store as a plan says.
func compete(t *testing.T, p workload.Plan, seed uint64, open func(name string) store.Ledger) *linear.History {
	t.Helper()
	h := linear.NewHistory()
	workload.Compete(t.Context(), p, clients, func(name string, _ int) *workload.Client {
		return workload.New(h.Client(name, open(name)), clock.New(), time.Second, name, seed)
	}, func() {})
	return h
}

// jostled lets others run before and after each operation, or they would hardly
// overlap: memory is quick.
func jostled(l store.Ledger) store.Ledger {
	return faultstore.New(l, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Before: 1, After: 1}
	}})
}

func TestMemoryIsLinearizable(t *testing.T) {
	t.Parallel()
	var sum linear.Result
	for i := 0; sum.Searched < share(t, 3); i++ {
		p := workload.Round(i, 60, 80)
		l := jostled(memory.New(memory.Options{}))
		h := compete(t, p, uint64(i), func(string) store.Ledger { return l })
		sum.Add(check(t, h))
		if t.Failed() {
			t.Fatalf("round %d is not linearizable", i)
		}
	}
	if sum.Conflicts == 0 {
		t.Errorf("no append of %d operations lost a race, want some", sum.Operations)
	}
	table.add(rowMemory, sum)
}

// harsh is compete with faults, in a bubble, where waiting takes no time. It adds
// up what struck.
func harsh(t *testing.T, p workload.Plan, seed uint64, rates faultstore.Rates, struck map[faultstore.FaultKind]int) (h *linear.History) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		var ledgers []*faultstore.Ledger
		h = compete(t, p, seed, func(name string) store.Ledger {
			if name == workload.Last {
				for _, f := range ledgers {
					if err := f.Settle(t.Context()); err != nil {
						t.Error(err)
					}
				}
				return inner
			}
			f := faultstore.New(inner.Handle(), faultstore.Options{Caller: name, Plan: faultstore.Random(seed, rates)})
			ledgers = append(ledgers, f)
			return f
		})
		for _, f := range ledgers {
			_ = f.Close(t.Context())
			for kind, n := range f.Struck() {
				struck[kind] += n
			}
		}
	})
	return h
}

func TestMemoryWithFaultsIsLinearizable(t *testing.T) {
	t.Parallel()
	struck := map[faultstore.FaultKind]int{}
	var sum linear.Result
	for i := 0; sum.Searched < share(t, 4); i++ {
		p := workload.Round(i, 50, 80)
		sum.Add(check(t, harsh(t, p, uint64(i), faults, struck)))
		if t.Failed() {
			t.Fatalf("round %d is not linearizable", i)
		}
	}
	t.Logf("faults: %v", struck)
	for _, k := range []faultstore.FaultKind{
		faultstore.KindLostReply, faultstore.KindOwnConflict, faultstore.KindBlackHole,
		faultstore.KindLate, faultstore.KindLanded, faultstore.KindMissed, faultstore.KindLatency,
	} {
		if struck[k] == 0 {
			t.Errorf("no fault of kind %q struck in %d operations, want some", k, sum.Operations)
		}
	}
	table.add(rowFaults, sum)
}

// A simulator may have one worker type for months, with appends that land a day
// late on keys that were trimmed long ago.
func TestALongHistoryOfOneWorkerTypeIsDecided(t *testing.T) {
	rates := faults
	rates.LateBy = 24 * time.Hour
	calls := 800
	if race.Enabled || testing.Short() {
		calls = 200
	}
	p := workload.Plan{WorkerType: "job", Keys: 10_000, Calls: calls, Keep: 100}
	h := harsh(t, p, 1, rates, map[faultstore.FaultKind]int{})
	began := time.Now()
	result := check(t, h)
	if result.Partitions != 1 || result.Operations < calls*clients/2 {
		t.Errorf("Check() = %+v, want many operations on one worker type", result)
	}
	t.Logf("%d operations, %d of unknown outcome, in %v", result.Operations, result.Unknown, time.Since(began))
}
