package workerlease_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestASlotCostsOneAppendAndOneLookForEachWorkerAndNothingBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, slots, length = 3, 20, 5 * time.Minute
		inner := memory.New(memory.Options{})
		var counters []*faultstore.Counter
		for i := range n {
			c := faultstore.NewCounter(inner.Handle())
			counters = append(counters, c)
			start(t, setup{ledger: c, Options: named(fmt.Sprint(i), i)})
		}
		at(time.Minute)
		for i, c := range counters {
			// Two, because a single answer may be wrong; and one to see who holds the lease.
			if got := c.Counts(); got[faultstore.OpNow] > 2 || got[faultstore.OpTail] != 1 || len(c.Log()) > 3 {
				t.Errorf("worker %d: %v in the first minute, want at most two looks at the time, and one at the head", i, got)
			}
			c.Reset()
		}
		at(slots*length + length/2)
		appends := 0
		for i, c := range counters {
			got := c.Counts()
			appends += got[faultstore.OpAppend]
			if got[faultstore.OpNow] != slots || got[faultstore.OpTail] != slots {
				t.Errorf("worker %d: %v in %d slots, want one now and one tail each", i, got, slots)
			}
			if got[faultstore.OpGet]+got[faultstore.OpTrim]+got[faultstore.OpInit]+got[faultstore.OpWorkerTypes] != 0 {
				t.Errorf("worker %d: %v, want now, tail and append only", i, got)
			}
			for _, e := range c.Log() {
				into := since(e.Began) % length
				if into < length-lead-time.Microsecond {
					t.Errorf("worker %d: a %s %v into a slot, want none before claims open at %v", i, e.Op, into, length-lead)
				}
			}
		}
		if appends != slots {
			t.Errorf("%d appends in %d slots, want one each", appends, slots)
		}
		if got := len(holders(t, inner)); got != slots {
			t.Errorf("%d grants in %d slots", got, slots)
		}
	})
}

// Whoever wins slot after slot, reads no more of the ledger than who loses.
func TestASlotCostsTwoRecordsReadForEachWorker(t *testing.T) {
	for name, set := range map[string]func(*workerlease.Options){
		"slots":    func(*workerlease.Options) {},
		"rotation": func(o *workerlease.Options) { o.Priority, o.TieBreak = 0, priority.Rotate },
	} {
		bubble(t, name, func(t *testing.T) {
			const n, slots, length = 3, 20, 5 * time.Minute
			inner := memory.New(memory.Options{})
			read := make([]int, n)
			for i := range n {
				o := named(fmt.Sprint(i), i)
				set(&o)
				start(t, setup{ledger: &hooked{Ledger: inner.Handle(), record: func(*store.Record) { read[i]++ }}, Options: o})
			}
			at(slots*length + length/2)
			won := holders(t, inner)
			for i, got := range read {
				if most := 2 * slots; got > most || got < most-3 {
					t.Errorf("worker %d, which won some of %v, read %d records in %d slots, want two each", i, won, got, slots)
				}
			}
		})
	}
}

// Who has not reached the head of a ledger by the start of a slot samples the time before it tries
// again. So a try may cost two reads, for as long as the store tells the time alone.
func TestAStoreThatTellsTheTimeAloneCostsTwoReadsASecond(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const minutes = 10
		reads := 0
		start(t, setup{
			Options: workerlease.Options{LeaseInterval: 5 * time.Second},
			ledger: faulty(t, func(c faultstore.Call) faultstore.Fault {
				reads++
				return eachCall(faultstore.Fault{Effect: faultstore.Dropped, Err: io.EOF}, faultstore.OpTail)(c)
			}),
		})
		at(minutes * time.Minute)
		if most := minutes * 120; reads > most {
			t.Errorf("%d reads in %d minutes, want %d at most", reads, minutes, most)
		}
	})
}

func TestAnIdleWorkerIsOneGoroutine(t *testing.T) {
	for _, n := range []int{1, 100} {
		bubble(t, fmt.Sprint(n), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			client := newClient(&worker{}, setup{ledger: ledger})
			before := bubbled()
			for i := range n {
				start(t, setup{client: client, Options: workerlease.Options{WorkerType: fmt.Sprint("type", i)}})
			}
			at(time.Minute)
			if got := bubbled() - before; got > n {
				t.Errorf("%d workers wait with %d goroutines, want one each", n, got)
			}
			at(6 * time.Minute)
			if got := bubbled() - before; got > 2*n {
				t.Errorf("%d workers hold leases with %d goroutines, want two each, one of them the user's", n, got)
			}
		})
	}
}

func TestAThousandWorkersAtOneBoundaryMakeOneAppendAndOneReadEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		counter := faultstore.NewCounter(memory.New(memory.Options{}))
		var workers []*worker
		for i := range n {
			workers = append(workers, start(t, setup{ledger: counter, Options: named(fmt.Sprint(i), 0)}))
		}
		at(time.Minute)
		counter.Reset()
		at(6 * time.Minute)
		got := counter.Counts()
		// The first append is done before another can read: memory takes no time.
		if got[faultstore.OpAppend] < 1 || got[faultstore.OpAppend] > 3 {
			t.Errorf("%d appends, want one, or some more that raced for it", got[faultstore.OpAppend])
		}
		if got[faultstore.OpTail] > n+10 || got[faultstore.OpNow] > n || got[faultstore.OpGet] > 10 {
			t.Errorf("%v for %d workers, want one tail and at most one now each", got, n)
		}
		held, lost := 0, 0
		for _, w := range workers {
			held += len(w.history())
			lost += w.Status().Lost
		}
		var reads []time.Duration
		for _, e := range counter.Log() {
			if e.Op == faultstore.OpTail {
				reads = append(reads, since(e.Began))
			}
		}
		if held != 1 || lost != n-1 {
			t.Errorf("%d hold the slot and %d lost it, want 1 and %d", held, lost, n-1)
		}
		// They spread over half a turn of a tenth of 10 s.
		if spread := slices.Max(reads) - slices.Min(reads); spread < 400*time.Millisecond || spread > 750*time.Millisecond {
			t.Errorf("the reads came within %v, want them spread over the turn", spread)
		}
	})
}

func TestMoreThan999PerMilleOfASlotAreForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		at(21 * time.Minute)
		for _, u := range w.history()[1:3] {
			if share := float64(u.ended-u.allocated) / float64(5*time.Minute); share < 0.999 {
				t.Errorf("%.4f of a slot of 5 min is for work, want 0.999", share)
			}
		}
	})
}

// officeHours has slots of 5 min from 9 to 18 o'clock, the last of which lasts until the next morning.
func officeHours(t *testing.T) slots.Schedule {
	t.Helper()
	s, err := slots.Cron("*/5 9-17 * * *", "")
	must(t, err)
	return s
}

// A slot that is much longer than the one after it isn't far ahead: nothing is asked of the store in it.
func TestALongSlotBeforeShortOnesCostsNoSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ledger := faulty(t, func(c faultstore.Call) faultstore.Fault {
			if since(time.Now()) > 18*time.Hour {
				asked++
			}
			return faultstore.Fault{}
		})
		w := start(t, setup{ledger: ledger, Options: workerlease.Options{Schedule: officeHours(t)}, work: func(_ context.Context, l workerlease.Lease) {
			if l.Slot.Length() > time.Hour {
				panic("it needs a short slot")
			}
		}})
		at(32*time.Hour + 30*time.Minute)
		if u := w.history(); u[len(u)-1].why != workerlease.Panicked {
			t.Fatalf("the last lease: %+v, want that of the night, ended by its code", u[len(u)-1])
		}
		if asked > 0 {
			t.Errorf("the store was called %d times in the night, want not at all", asked)
		}
	})
}
