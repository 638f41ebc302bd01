package workerlease_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// parted are the options of a worker that takes over within d.
func parted(name string, priority int, d time.Duration) workerlease.Options {
	o := named(name, priority)
	o.FailoverWithin = d
	return o
}

// turnsOf are the leases of workers, by when they began.
func turnsOf(workers ...*worker) (all []turn) {
	for _, w := range workers {
		all = append(all, w.history()...)
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.allocated, b.allocated) })
	return all
}

// apart checks that no two leases were worked under at one time, and that tokens
// grow.
func apart(t *testing.T, workers ...*worker) {
	t.Helper()
	all := turnsOf(workers...)
	for i := 1; i < len(all); i++ {
		before, u := all[i-1], all[i]
		if before.ended == 0 || before.ended > u.allocated {
			t.Errorf("allocated at %v, and the lease of %v ended at %v", u.allocated, before.allocated, before.ended)
		}
		if u.lease.Token <= before.lease.Token {
			t.Errorf("token %d after %d", u.lease.Token, before.lease.Token)
		}
	}
}

func TestAStandbyTakesOverWithinFailoverWithin(t *testing.T) {
	const d = 20 * time.Second
	const turn = time.Second // the lead is 10 s
	for dies := 5 * time.Minute; dies < 10*time.Minute; dies += 3700 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			inner, link := cut(t)
			first := start(t, setup{ledger: link, Options: parted("first", 0, d)})
			second := start(t, setup{ledger: inner.Handle(), Options: parted("second", 1, d)})
			third := start(t, setup{ledger: inner.Handle(), Options: parted("third", 2, d)})
			at(dies)
			link.Break(faultstore.Down()) // It does what it may, but as if it were dead.
			at(10*time.Minute + 40*time.Second)
			apart(t, first, second, third)
			bound := dies + d + 2*turn
			if dies > 10*time.Minute-10*time.Second-d {
				bound += 10 * time.Second // What is left of the slot is less than a lead.
			}
			u := second.turn(t, 0)
			if u.allocated > bound {
				t.Errorf("dead at %v: allocated at %v, want by %v", dies, u.allocated, bound)
			}
			if n := len(third.history()); n != 0 {
				t.Errorf("dead at %v: the lowest priority had %d leases, want none", dies, n)
			}
			if n := len(first.history()); n != 1 && dies < 10*time.Minute-10*time.Second {
				t.Errorf("dead at %v: the dead worker had %d leases, want one", dies, n)
			}
			if len(observed[event.Lost](second)) != 1 && u.allocated < 10*time.Minute {
				t.Errorf("dead at %v: observed %d lost slots, want one", dies, len(observed[event.Lost](second)))
			}
		})
	}
}

func TestWithoutFailoverWithinADeadHoldersSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		first := start(t, setup{ledger: link, Options: named("first", 0)})
		second := start(t, setup{ledger: inner.Handle(), Options: named("second", 1)})
		at(5*time.Minute + time.Second)
		link.Break(faultstore.Down()) // As if it were dead.
		at(14 * time.Minute)
		equal(t, "slots of the dead worker", first.starts(), minutes(5)...)
		equal(t, "slots of the other", second.starts(), minutes(10)...)
		if late := second.turn(t, 0).allocated - 10*time.Minute; late < 0 || late > 11*time.Millisecond {
			t.Errorf("allocated %v after the boundary, want nobody to take over the slot of 5m, and no time lost", late)
		}
		link.Mend()
		at(16 * time.Minute)
		equal(t, "slots of the worker that is back", first.starts(), minutes(5, 15)...)
	})
}

func TestAHealthySlotCostsAnAppendForEachWindowAndAReadForEachStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d, slots = 20 * time.Second, 10
		inner := memory.New(memory.Options{})
		holder, standby := faultstore.NewCounter(inner.Handle()), faultstore.NewCounter(inner.Handle())
		first := start(t, setup{ledger: holder, Options: parted("first", 0, d)})
		second := start(t, setup{ledger: standby, Options: parted("second", 1, d)})
		at((slots+1)*5*time.Minute + 2*time.Minute)
		holder.Reset()
		standby.Reset()
		at((2*slots+1)*5*time.Minute + 2*time.Minute)
		// 290 s of the slot in windows of at most 15 s, and one for the lead.
		const windows = 21
		if got := holder.Counts(); got[faultstore.OpAppend] != slots*windows || got[faultstore.OpTail] > 3*slots {
			t.Errorf("the holder: %v in %d slots, want %d appends each, one tail and one each 2 min", got, slots, windows)
		}
		if got := standby.Counts(); got[faultstore.OpAppend] != 0 || got[faultstore.OpTail] > slots*(windows+1) {
			t.Errorf("the standby: %v in %d slots, want at most %d tails each", got, slots, windows+1)
		}
		for i, u := range first.history() {
			if i > 0 && len(u.extended) != windows-1 && u.ended != 0 {
				t.Errorf("slot %d was extended %d times, want %d", i, len(u.extended), windows-1)
			}
			if u.ended != 0 && since(u.last.Expiry) != since(u.lease.Slot.End) {
				t.Errorf("slot %d ended with an expiry at %v, want at the slot's end", i, since(u.last.Expiry))
			}
		}
		if n := len(second.history()); n != 0 {
			t.Errorf("the standby had %d leases", n)
		}
		if n := len(observed[event.Missed](second)) + len(observed[event.Missed](first)); n != 0 {
			t.Errorf("%d slots missed", n)
		}
		if n := len(observed[event.Lost](second)); n != 2*slots+1 {
			t.Errorf("the standby observed %d lost slots, want one for each of %d", n, 2*slots+1)
		}
		apart(t, first, second)
	})
}

// As while a setting is rolled out.
func TestWorkersWithoutFailoverLeaveTheSlotToItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		first := start(t, setup{ledger: inner.Handle(), Options: parted("first", 0, 20*time.Second)})
		other := named("other", 1)
		second := start(t, setup{ledger: inner.Handle(), joins: true, Options: other})
		at(31 * time.Minute)
		equal(t, "slots of the holder", first.starts(), minutes(5, 10, 15, 20, 25, 30)...)
		for _, u := range second.history() {
			if u.allocated > 5*time.Minute {
				t.Errorf("a worker without failover was allocated at %v", u.allocated)
			}
		}
		apart(t, first, second)
	})
}

func TestAWorkerThatLeadsOnKeepsItsLease(t *testing.T) {
	for _, d := range []time.Duration{0, 20 * time.Second} {
		bubble(t, fmt.Sprint(d), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			on := func(name string, priority int) workerlease.Options {
				o := parted(name, priority, d)
				o.Continuous = true
				return o
			}
			low := start(t, setup{ledger: inner.Handle(), Options: on("low", 3)})
			at(32 * time.Minute)
			u := low.turn(t, 0)
			if len(low.history()) != 1 || u.expiries != 0 || len(u.extended) < 5 {
				t.Fatalf("after 27 min of leading: %d leases, %d expiries, extended %v", len(low.history()), u.expiries, u.extended)
			}
			high := start(t, setup{ledger: inner.Handle(), Options: on("high", 1)})
			at(40 * time.Minute)
			u, v := low.turn(t, 0), high.turn(t, 0)
			if len(low.history()) != 1 || u.why != workerlease.WindowEnded || u.last.Token != u.lease.Token || since(u.last.Expiry) != 35*time.Minute {
				t.Errorf("the lower priority: %d leases, ended at %v: %q, with %+v", len(low.history()), u.ended, u.why, u.last)
			}
			if gap := v.allocated - u.ended; v.allocated < 35*time.Minute || gap <= 0 || gap > 275*time.Millisecond {
				t.Errorf("the higher priority took over at %v, %v after the end, want at the boundary, within a margin", v.allocated, gap)
			}
			apart(t, low, high)
			for _, r := range records(t, inner) {
				if r.Kind == store.KindGrant && r.InstanceID == "low" && r.Token != u.lease.Token {
					t.Errorf("seq %d has token %d, want that of the term, %d", r.Seq, r.Token, u.lease.Token)
				}
			}
			high.stop(t)
			at(52 * time.Minute)
			if n := len(low.history()); n != 2 {
				t.Errorf("the lower priority had %d leases, want a second one after the higher had left", n)
			}
		})
	}
}

func TestWithoutFailbackTheLeaseStaysWhereItIs(t *testing.T) {
	for _, d := range []time.Duration{0, 20 * time.Second} {
		bubble(t, fmt.Sprint(d), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			stay := func(name string, priority int) workerlease.Options {
				o := parted(name, priority, d)
				o.Continuous, o.NoFailback = true, true
				return o
			}
			low := start(t, setup{ledger: inner.Handle(), Options: stay("low", 7)})
			at(7 * time.Minute)
			high := start(t, setup{ledger: inner.Handle(), Options: stay("high", 0)})
			at(61 * time.Minute)
			if l, h := len(low.history()), len(high.history()); l != 1 || h != 0 {
				t.Fatalf("%d and %d leases, want the first worker to lead on", l, h)
			}
			low.stop(t)
			at(66 * time.Minute)
			if n := len(high.history()); n != 1 {
				t.Errorf("the other had %d leases, want one, after the first had left", n)
			}
			apart(t, low, high)
		})
	}
}

// Store time is what the bubble's clock shows. The servers that the workers ask are wrong
// by as much as may be: at the worst, the leader sees the latest time that is possible, and
// its successor the earliest.
func TestTheGapOfAFailbackIsTheMarginAndTwiceTheUncertaintyOfEachWorker(t *testing.T) {
	const skew = 100 * time.Millisecond
	for name, test := range map[string]struct{ low, high, early, late time.Duration }{
		"the worst":       {skew, -skew, 2 * skew, 2 * skew},
		"clocks agree":    {0, 0, skew, skew},
		"the other way":   {-skew, skew, 0, 0},
		"both are ahead":  {skew, skew, 2 * skew, 0},
		"both are behind": {-skew, -skew, 0, 2 * skew},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			o := parted("low", 3, 20*time.Second)
			o.Continuous = true
			low := start(t, setup{ledger: vague(inner, skew, test.low), Options: o})
			at(11 * time.Minute)
			o.InstanceID, o.Priority = "high", 0
			high := start(t, setup{ledger: vague(inner.Handle(), skew, test.high), Options: o})
			boundary := 15 * time.Minute
			at(boundary - 2*time.Second)
			// They grow more uncertain up to the boundary.
			lows, highs := low.Status().Uncertainty, high.Status().Uncertainty
			at(16 * time.Minute)
			u, v := low.turn(t, 0), high.turn(t, 0)
			const drift, wake = 3 * time.Millisecond, 3 * time.Millisecond
			early, late := boundary-u.ended, v.allocated-boundary
			if most := margin + 2*(lows+drift) + wake; early > most || late > 2*(highs+drift)+wake {
				t.Errorf("the leader stopped %v early, the next began %v late, want at most %v and %v", early, late, most, 2*highs)
			}
			// That is what it comes to, but for how long ago they were sure of the time.
			const age = 25 * time.Millisecond
			if early < margin+test.early || early > margin+test.early+age || late < test.late || late > test.late+age {
				t.Errorf("the leader stopped %v early, the next began %v late, want %v and %v, and up to %v more", early, late, margin+test.early, test.late, age)
			}
			apart(t, low, high)
		})
	}
}
