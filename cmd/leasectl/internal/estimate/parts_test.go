package estimate

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestThePlanCutsSlotsAsTheEngineDoes(t *testing.T) {
	timed := func(l store.Ledger) store.Ledger { return l }
	silent := func(l store.Ledger) store.Ledger { return untimed{l} }
	for name, with := range map[string]func(store.Ledger) store.Ledger{"time along with a tail": timed, "no time along with a tail": silent} {
		for _, c := range []struct{ slot, failover, lead time.Duration }{
			{6 * time.Second, 2 * time.Second, 0},
			{time.Minute, 2 * time.Second, 0},
			{time.Minute, 500 * time.Millisecond, 0},
			{5 * time.Minute, 20 * time.Second, 0},
			{5 * time.Minute, 150 * time.Second, 0},
			{time.Hour, time.Minute, 30 * time.Second},
			{time.Hour, 2 * time.Minute, 0},
			{time.Hour, 10 * time.Minute, 100 * time.Millisecond},
			{24 * time.Hour, time.Hour, 0},
			{24 * time.Hour, 8 * time.Hour, 0},
		} {
			t.Run(fmt.Sprint(name, ", ", c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const workers, warmUp, n = 3, 3, 4
					schedule := slots.Must(slots.Every(c.slot))
					options := workerlease.Options{LeaseInterval: c.slot, FailoverWithin: c.failover, Lead: c.lead}
					planned := Of(Options{Store: Cosmos, Consistency: Strong, Workers: workers, Slot: c.slot, Timing: timingOf(t, options)})
					counters, _ := crew(t, options, workers, with)
					logs := observed(counters, c.slot, warmUp, n)
					winners := 0
					for i, counter := range counters {
						got := asked(counter.Counts())
						got.Get, got.Trim = 0, 0
						won := got.Append > 0
						want := planned.rows[1].each.times(n)
						if won {
							winners++
							want = planned.rows[0].each.times(n)
							checkCuts(t, logs[i], schedule, planned.parts, c.failover)
						}
						// Where a part is shorter than a look at the time lasts, one lasts for
						// several, or for ever if the tail reports the time.
						if !won && planned.parts.length <= max(planned.turns.Lead, time.Second) && got.Now <= want.Now {
							got.Now = want.Now
						}
						// A tail that reports the time saves the winner a sample, too.
						if won && name == "time along with a tail" && got.Now <= want.Now {
							got.Now = want.Now
						}
						if got != want {
							t.Errorf("worker %d in %d slots: %+v, planned %+v", i, n, got, want)
						}
					}
					if winners != 1 {
						t.Errorf("%d workers won slots, want the one that goes first ever since", winners)
					}
				})
			})
		}
	}
}

// checkCuts checks when a winner appended: once before the boundary, and then before
// the end of each part.
func checkCuts(t *testing.T, log []faultstore.Entry, schedule slots.Schedule, c parts, failover time.Duration) {
	t.Helper()
	early := c.timing.ExtendEarly
	log = slices.DeleteFunc(log, func(e faultstore.Entry) bool { return e.Op != faultstore.OpAppend })
	for _, e := range log {
		at := e.Began.Sub(schedule.At(e.Began).Start)
		k := (at + early + c.length/2) / c.length
		// It is early by how uncertain the time may be.
		if due := k*c.length - early; at < due-min(early/4, 150*time.Millisecond+c.length/500) || at > due+10*time.Millisecond {
			if before := schedule.Next(e.Began).Start.Sub(e.Began); before > failover/2 {
				t.Errorf("an append %v into the slot, planned %v", at, due)
			}
		}
	}
	if n := len(log); n%int(c.n) != 0 || n == 0 {
		t.Errorf("%d appends in whole slots of %v parts", n, c.n)
	}
}

func TestTheHelpCountsThePartsOfItsExample(t *testing.T) {
	timing := timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 30 * time.Second})
	if got := cut(timing, 5*time.Minute, timing.LeadAfter(5*time.Minute)).n; got != 14 {
		t.Errorf("slots of 5m with a failover within 30s have %v parts, the help says 14", got)
	}
}
