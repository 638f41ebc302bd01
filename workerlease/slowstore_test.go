package workerlease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// nearby is the round trip of a worker that is next to the store.
const nearby = time.Millisecond

// away starts a worker that is a round trip away from the store: there is the way there, and
// the rest the way back.
func away(t *testing.T, inner *memory.Ledger, trip, there time.Duration, o workerlease.Options) *worker {
	t.Helper()
	l := struck(t, inner.Handle(), eachCall(faultstore.Fault{Before: there, After: trip - there}))
	var seed [32]byte
	copy(seed[:], o.InstanceID)
	o.Retention = 1000 * time.Hour // The ledger is counted in the end.
	client := workerlease.NewClient(l, workerlease.ClientOptions{Clock: clock.New(), Rand: rand.NewChaCha8(seed)})
	return start(t, setup{Options: o, ledger: l, client: client, plain: true})
}

// shares are the parts of the slots of a length that workers had, by their names: of all slots up
// to the n-th, from the fourth on.
func shares(t *testing.T, l store.Ledger, slot time.Duration, n int) map[string]float64 {
	t.Helper()
	at(time.Duration(n) * slot)
	had, all := map[string]float64{}, float64(n-3)
	for _, r := range records(t, l) {
		if from := since(r.WindowStart); r.Kind == store.KindGrant && from >= 3*slot && from < time.Duration(n)*slot {
			had[r.InstanceID] += 1 / all
		}
	}
	return had
}

// slots of these lengths have leads of 250 ms, 2.5 s and 10 s.
var slotLengths = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// The worker of the highest priority has the slots up to a round trip of a quarter of a lead,
// although all others are next to the store.
func TestTheHighestPriorityWinsHoweverFarTheStoreIs(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	for _, slot := range slotLengths {
		lead := priority.Lead(slot, 0)
		trips := []time.Duration{lead / 50, lead / 20, lead / 10, lead / 4}
		if race.Enabled {
			trips = trips[3:]
		}
		for _, trip := range trips {
			for name, there := range map[string]time.Duration{"both ways alike": trip / 2, "all on the way there": trip, "all on the way back": 0} {
				bubble(t, fmt.Sprint(slot, "/", trip, "/", name), func(t *testing.T) {
					inner := memory.New(memory.Options{})
					away(t, inner, trip, there, workerlease.Options{InstanceID: "far", LeaseInterval: slot})
					for _, name := range []string{"near", "nearer"} {
						away(t, inner, nearby, nearby/2, workerlease.Options{InstanceID: name, LeaseInterval: slot, Priority: 1})
					}
					if had := shares(t, inner, slot, 203); had["far"] < 0.99 {
						t.Errorf("slots had = %v, want 0.99 of them at least by the one of the highest priority", had)
					}
				})
			}
		}
	}
}

// A store that takes a lead for each answer costs no slot.
func TestSlotsAreWonUpToARoundTripOfALead(t *testing.T) {
	for _, slot := range slotLengths {
		lead := priority.Lead(slot, 0)
		for _, trip := range []time.Duration{lead / 3, lead / 2, lead} {
			bubble(t, fmt.Sprint(slot, "/", trip), func(t *testing.T) {
				inner := memory.New(memory.Options{})
				w := away(t, inner, trip, trip/2, workerlease.Options{InstanceID: "far", LeaseInterval: slot})
				if had := shares(t, inner, slot, 103); had["far"] < 0.99 {
					t.Fatalf("slots had = %v, want all", had)
				}
				at(103*slot + slot/2)
				for _, u := range w.history()[3:] {
					if late := u.allocated - since(u.lease.Slot.Start); late > trip+slot/200 {
						t.Errorf("the slot from %v begins %v after it, want %v at most", since(u.lease.Slot.Start), late, trip)
						break
					}
				}
			})
		}
	}
}

// A store becomes slow while workers run, and is well again later. It costs a few slots.
func TestAStoreThatBecomesSlowCostsFewSlots(t *testing.T) {
	for _, slot := range slotLengths {
		bubble(t, slot.String(), func(t *testing.T) {
			slow := func() bool { n := time.Since(t0) / slot; return n >= 50 && n < 100 }
			inner := memory.New(memory.Options{})
			trip := priority.Lead(slot, 0) * 4 / 5
			for _, name := range []string{"a", "b", "c"} {
				l := struck(t, inner.Handle(), func(faultstore.Call) faultstore.Fault {
					if slow() {
						return faultstore.Fault{Before: trip / 2, After: trip / 2}
					}
					return faultstore.Fault{Before: nearby}
				})
				start(t, setup{ledger: l, Options: workerlease.Options{InstanceID: name, LeaseInterval: slot}})
			}
			all := 0.0
			for _, share := range shares(t, inner, slot, 153) {
				all += share
			}
			if all < 0.98 {
				t.Errorf("%.3f of the slots were had, want 0.98", all)
			}
		})
	}
}

// An operation that never ends is given up, and costs no slot.
func TestAnOperationThatHangsIsGivenUp(t *testing.T) {
	for _, slot := range slotLengths {
		lead := priority.Lead(slot, 0)
		for _, trip := range []time.Duration{nearby, lead / 10} {
			bubble(t, fmt.Sprint(slot, "/", trip), func(t *testing.T) {
				inner := memory.New(memory.Options{})
				l := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
					f := faultstore.Fault{Before: trip}
					if c.N%7 == 6 {
						f.Block, f.Effect = true, faultstore.Dropped
					}
					return f
				})
				start(t, setup{ledger: l, Options: workerlease.Options{InstanceID: "a", LeaseInterval: slot}})
				had := shares(t, inner, slot, 103)
				if n := l.Struck()[faultstore.KindBlackHole]; had["a"] < 0.99 || n < 20 {
					t.Errorf("slots had = %v, and %d operations hung; want all, and 20", had, n)
				}
			})
		}
	}
}

// A holder goes on over boundaries, and from part to part of a slot, however far the store is.
func TestAHolderExtendsItsLeaseHoweverFarTheStoreIs(t *testing.T) {
	const slot = time.Minute
	for _, trip := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond} {
		bubble(t, fmt.Sprint("NoFailback/", trip), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			o := workerlease.Options{InstanceID: "far", LeaseInterval: slot, Continuous: true, NoFailback: true, Priority: 1}
			far := away(t, inner, trip, trip/2, o)
			at(5 * slot)
			o.InstanceID, o.Priority = "near", 0
			away(t, inner, nearby, nearby/2, o)
			at(50 * slot)
			if h := far.history(); len(h) != 1 || h[0].ended != 0 {
				t.Errorf("leases = %+v, want one that goes on", h)
			}
		})
		bubble(t, fmt.Sprint("FailoverWithin/", trip), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			w := away(t, inner, trip, trip/2, workerlease.Options{InstanceID: "far", LeaseInterval: slot, FailoverWithin: slot / 4})
			at(50 * slot)
			h := w.history()
			if len(h) != 49 {
				t.Fatalf("%d leases, want 49", len(h))
			}
			for _, u := range h[:48] {
				if held := u.ended - u.allocated; held < slot-3*trip {
					t.Errorf("the slot from %v was held for %v", since(u.lease.Slot.Start), held)
				}
			}
		})
	}
}

// The first samples of the time that a worker takes are answered late, and the next slot is near. The
// time is sampled once more before the slot is begun late because of that, or given up.
func TestASlowSampleOfTheTimeCostsNoSlot(t *testing.T) {
	for name, slow := range map[string]time.Duration{"a part of the slot": 3 * time.Second, "half the slot": 9 * time.Second} {
		bubble(t, name, func(t *testing.T) {
			samples := 0
			l := faulty(t, func(c faultstore.Call) faultstore.Fault {
				if c.Op != faultstore.OpNow {
					return faultstore.Fault{}
				}
				if samples++; samples <= 2 {
					return faultstore.Fault{After: slow}
				}
				return faultstore.Fault{}
			})
			o := named("a", 0)
			o.LeaseInterval, o.Lead = 20*time.Second, 10*time.Second
			at(40*time.Second - 2*slow - time.Second)
			client := workerlease.NewClient(stampless{l}, workerlease.ClientOptions{Clock: clock.New()})
			w := start(t, setup{Options: o, ledger: l, client: client, plain: true})
			at(70 * time.Second)
			if u := w.turn(t, 0); u.allocated < 40*time.Second || u.allocated > 40*time.Second+100*time.Millisecond {
				t.Errorf("the first slot was begun at %v, want 40s", u.allocated)
			}
			if samples > 5 {
				t.Errorf("%d samples, want two, another, and those of the next slot", samples)
			}
		})
	}
}

// stampless is a store that gives its time only to those who ask for it.
type stampless struct{ store.Ledger }

func (l stampless) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, _, err := l.Ledger.Tail(ctx, workerType, limit)
	return records, store.Stamp{}, err
}

// A store answers its clock fast, and queries so slowly that their first time-out cuts them. The fast
// answers don't make the worker forget how long the slow ones take.
func TestAStoreWithAFastClockAndSlowQueriesIsFoundOut(t *testing.T) {
	for _, slow := range []time.Duration{4 * time.Second, 8 * time.Second} {
		bubble(t, fmt.Sprint(slow), func(t *testing.T) {
			l := faulty(t, func(c faultstore.Call) faultstore.Fault {
				if c.Op != faultstore.OpTail {
					return faultstore.Fault{Before: 10 * time.Millisecond}
				}
				return faultstore.Fault{Before: slow}
			})
			w := start(t, setup{Options: named("a", 0), ledger: stampless{l}, plain: true})
			at(61 * time.Minute)
			if n := len(w.history()); n < 11 {
				t.Errorf("%d slots of 12, at %v", n, w.starts())
			}
		})
	}
}

// A store that was fast becomes slow when work ends. That the work is done is recorded all the same:
// what is given up soon, since an outage may be over soon, gets more time the next time.
func TestWorkIsRecordedAsDoneOnAStoreThatHasBecomeSlow(t *testing.T) {
	for _, slow := range []time.Duration{time.Second, 4 * time.Second} {
		bubble(t, fmt.Sprint(slow), func(t *testing.T) {
			l := faulty(t, during(9*time.Minute, ever, faultstore.Fault{Before: slow}))
			o := workerlease.Options{WorkerType: "job", Job: &workerlease.Job{}}
			w := start(t, setup{Options: o, ledger: l, plain: true, task: func(context.Context, workerlease.Lease) error {
				time.Sleep(4*time.Minute + 15*time.Second)
				return nil
			}})
			at(10 * time.Minute)
			if done := observed[event.SlotDone](w); len(done) == 0 {
				t.Error("45 s after its end the work is not recorded as done")
			}
		})
	}
}
