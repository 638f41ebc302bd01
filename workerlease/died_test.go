package workerlease_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// died are the outcomes in the ledger that say that a worker has died.
func died(t *testing.T, l store.Ledger) []store.Outcome {
	t.Helper()
	return slices.DeleteFunc(told(t, l), func(o store.Outcome) bool { return o.Cause != store.WorkerDied })
}

// hourly are the options of a job that may begin late.
func hourly(name string, priority, attempts int) workerlease.Options {
	o := perSlot(name, priority)
	o.LeaseInterval, o.Job = time.Hour, &workerlease.Job{MaxAttempts: attempts, StartWithin: 10 * time.Minute}
	return o
}

// A worker is killed in the middle of a job: it is never heard of again. The next one says so once, in an event and
// in the ledger.
func TestAnAttemptWhoseWorkerIsKilledIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		most    int
		again   bool // a second attempt is made
		givenUp bool
	}{
		"and made again":               {3, true, false},
		"and was the last":             {1, false, true},
		"and any number may be made":   {0, true, false},
		"and the next one is the last": {2, true, false},
	} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			start(t, setup{ledger: link, Options: hourly("victim", 0, c.most), task: untilTold})
			b := start(t, setup{ledger: inner, Options: hourly("b", 1, c.most), task: idle})
			third := start(t, setup{ledger: inner, Options: hourly("c", 2, c.most), task: idle})
			at(time.Hour + time.Minute)
			link.Break(faultstore.Down()) // From here on nobody hears of it any more.
			at(time.Hour + 30*time.Minute)
			var lost []event.WorkerDied
			for _, w := range []*worker{b, third} {
				lost = append(lost, observed[event.WorkerDied](w)...)
			}
			if len(lost) != 1 || lost[0].Attempt != 1 || lost[0].Holder != "victim" || since(lost[0].Slot.Start) != time.Hour || lost[0].GivenUp != c.givenUp {
				t.Errorf("lost attempts: %+v, want one, the first of the slot from 1h, by victim, given up: %v", lost, c.givenUp)
			}
			said := died(t, inner)
			if len(said) != 1 || said[0].Result != store.Failed || said[0].InstanceID != "victim" || said[0].Attempt != 1 || said[0].GivenUp != c.givenUp || since(said[0].SlotStart) != time.Hour {
				t.Errorf("the ledger says %+v, want that victim has died once, given up: %v", said, c.givenUp)
			}
			s := b.Status()
			if c.again != s.DoneUntil.After(t0.Add(time.Hour)) {
				t.Errorf("done until %v, want the slot done: %v", s.DoneUntil, c.again)
			}
			if gaveUp := len(observed[event.Exhausted](b)); (gaveUp == 1) != c.givenUp || s.GivenUp != gaveUp || s.Failed != len(observed[event.WorkerDied](b)) {
				t.Errorf("b says %d times that the slot is given up, and its status is %+v, want it given up: %v", gaveUp, s, c.givenUp)
			}
			link.Mend()
		})
	}
}

// Who takes over says that the one before has died, by a record of its own, and goes on above that: no append is
// refused as if the store had lost records.
func TestALeaseGoesOnAboveTheWordOnTheDead(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner, link := cut(t)
		works := (&job{do: heeds(10 * time.Minute)}).run
		start(t, setup{ledger: link, Options: hourly("victim", 0, 0), task: works})
		b := start(t, setup{ledger: inner, Options: hourly("b", 1, 0), task: works})
		at(time.Hour + time.Minute)
		link.Break(faultstore.Down())
		at(time.Hour + 30*time.Minute)
		if failed := observed[event.StoreFailed](b); len(failed) > 0 {
			t.Errorf("appends failed: %+v, want none", failed)
		}
		if n, extended := len(died(t, inner)), len(observed[event.Extended](b)); n != 1 || extended == 0 || !b.Status().DoneUntil.After(t0.Add(time.Hour)) {
			t.Errorf("%d records of the death, and %d extensions above it, done until %v", n, extended, b.Status().DoneUntil)
		}
	})
}

// Claims are stored while nobody hears of them, and for slots that are over by then. Their worker lives.
func TestAWorkerDoesNotCallItselfDead(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		link := faultstore.New(inner, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			if now := since(c.At); c.Op == faultstore.OpAppend && now > 3*time.Minute-20*time.Second && now < 5*time.Minute+30*time.Second {
				late := faultstore.BlackHole(faultstore.Late)
				late.LateBy = 5*time.Minute + 40*time.Second - now
				return late
			}
			return faultstore.Fault{}
		}})
		o := perSlot("a", 0)
		o.LeaseInterval = time.Minute
		a := start(t, setup{ledger: link, Options: o, task: func(context.Context, workerlease.Lease) error { return nil }})
		at(9 * time.Minute)
		head := records(t, inner)
		if s := a.Status(); len(head) < 3 || !s.DoneUntil.After(t0.Add(8*time.Minute)) {
			t.Fatalf("done until %v after %d records, want that it goes on", s.DoneUntil, len(head))
		}
		if lost, said := observed[event.WorkerDied](a), died(t, inner); len(lost) > 0 || len(said) > 0 {
			t.Errorf("it says of its own attempts %+v, and the ledger %+v, want nothing of a death", lost, said)
		}
	})
}

// Who releases its slot, because it has failed or was stopped, has not died, and neither has one whose work is done.
func TestWhoLeavesWordHasNotDied(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner, _ := cut(t)
		j := &job{do: func(_ context.Context, l workerlease.Lease, attempt int) error {
			if attempt < 3 {
				return errWork
			}
			return nil
		}}
		o := perSlot("a", 0)
		o.Job.MaxAttempts = 5
		a := start(t, setup{ledger: inner, Options: o, task: j.run})
		o.InstanceID = "b"
		b := start(t, setup{ledger: inner, Options: o, task: j.run})
		at(19 * time.Minute)
		for _, w := range []*worker{a, b} {
			if lost := observed[event.WorkerDied](w); len(lost) > 0 {
				t.Errorf("%s says that attempts were lost: %+v", w.Status().InstanceID, lost)
			}
		}
		if said := died(t, inner); len(said) > 0 {
			t.Errorf("the ledger says that workers have died: %+v", said)
		}
	})
}

// A store stands still while a run is recorded as done. Another worker takes its worker for dead, and hears of its success
// before that is told.
func TestWhoIsDoneMeanwhileHasNotDied(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		stalled := func(c faultstore.Call) bool {
			return c.Op == faultstore.OpAppend && since(c.At) > time.Hour && since(c.At) < time.Hour+2*time.Minute
		}
		slow := struck(t, inner, when(func(c faultstore.Call) bool { return stalled(c) && c.Record.Kind == store.KindDone }, faultstore.LandsLate(time.Minute)))
		mute := struck(t, inner, when(stalled, faultstore.Down()))
		works := func(context.Context, workerlease.Lease) error { time.Sleep(time.Second); return nil }
		start(t, setup{ledger: slow, Options: hourly("victim", 0, 1), task: works})
		b := start(t, setup{ledger: mute, Options: hourly("b", 1, 1), task: works})
		at(time.Hour + 30*time.Minute)
		if lost, head := observed[event.WorkerDied](b), newest(t, inner); len(lost) != 1 || since(head.DoneUntil) != 2*time.Hour {
			t.Fatalf("lost attempts: %+v, and done until %v, want one, and the slot done", lost, head.DoneUntil)
		}
		if said := died(t, inner); len(said) > 0 {
			t.Errorf("the ledger says %+v of a worker that is done, want nothing", said)
		}
	})
}

// A store takes no records for a while, so that a worker loses its lease and stops its job. Another one takes it for dead, and hears
// what came of the job before that is told.
func TestWhoSaysThatItHasFailedHasNotDied(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		deaf := func(from, to time.Duration) store.Ledger {
			return struck(t, inner, during(from, to, faultstore.Down(), faultstore.OpAppend))
		}
		options := func(name string, priority int) workerlease.Options {
			o := perSlot(name, priority)
			o.LeaseInterval, o.FailoverWithin, o.Job = time.Hour, time.Minute, &workerlease.Job{MaxAttempts: 1, StartWithin: 10 * time.Minute}
			return o
		}
		start(t, setup{ledger: deaf(time.Hour+5*time.Minute, time.Hour+8*time.Minute), Options: options("victim", 0), task: untilTold})
		b := start(t, setup{ledger: deaf(time.Hour+5*time.Minute, time.Hour+12*time.Minute), Options: options("b", 1), task: untilTold})
		at(time.Hour + 50*time.Minute)
		o, _ := newest(t, inner).Outcome()
		if lost := observed[event.WorkerDied](b); len(lost) != 1 || o.InstanceID != "victim" || o.Result != store.Failed {
			t.Fatalf("lost attempts: %+v, and the ledger says %+v, want one, and that victim has failed", lost, o)
		}
		if said := died(t, inner); len(said) > 0 {
			t.Errorf("the ledger says %+v of a worker that has said what came of its work, want nothing", said)
		}
	})
}

// The last attempt fails: that the slot is given up is said at once by the worker itself, once.
func TestTheLastAttemptThatFailsGivesTheSlotUp(t *testing.T) {
	for name, task := range map[string]workerlease.Task{
		"an error": func(context.Context, workerlease.Lease) error { return errWork },
		"a panic":  func(context.Context, workerlease.Lease) error { panic("no paper") },
	} {
		bubble(t, name, func(t *testing.T) {
			inner, _ := cut(t)
			o := perSlot("a", 0)
			o.Job.MaxAttempts = 2
			a := start(t, setup{ledger: inner, Options: o, task: task})
			at(9*time.Minute + 50*time.Second)
			if n := len(observed[event.Exhausted](a)); n != 1 || a.Status().GivenUp != 1 || a.Status().Failed != 2 {
				t.Errorf("the slot is given up %d times, and the status is %v, want once, after two failures", n, a.Status())
			}
			if o, _ := newest(t, inner).Outcome(); !o.GivenUp || o.Attempt != 2 {
				t.Errorf("the ledger says %+v, want that the second attempt was the last", o)
			}
		})
	}
	bubble(t, "of TryClaim", func(t *testing.T) {
		inner, _ := cut(t)
		o := perSlot("a", 0)
		o.Job.MaxAttempts = 1
		at(5 * time.Minute)
		seen := &worker{}
		c, err := newClient(seen, setup{ledger: inner}).TryClaim(t.Context(), o)
		must(t, err)
		c.Lease.FailedWith(errWork)
		must(t, c.Release(t.Context()))
		if o, _ := newest(t, inner).Outcome(); !o.GivenUp || len(observed[event.Exhausted](seen)) != 1 {
			t.Errorf("the ledger says %+v, and %d events say that the slot is given up, want one", o, len(observed[event.Exhausted](seen)))
		}
	})
}

// A run that goes on over the end of its slot is killed there. Its slot is over, so nobody tries it again: the worker that claims
// the next one says that it is lost.
func TestARunThatIsKilledAfterItsSlotIsReportedByWhoClaimsTheNext(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner, link := cut(t)
		start(t, setup{ledger: link, Options: perSlot("victim", 0), task: untilTold})
		b := start(t, setup{ledger: inner, Options: perSlot("b", 1), task: func(context.Context, workerlease.Lease) error { return nil }})
		at(12 * time.Minute) // It began at 5m.
		link.Break(faultstore.Down())
		at(16 * time.Minute)
		lost, said := observed[event.WorkerDied](b), died(t, inner)
		if len(lost) != 1 || lost[0].Holder != "victim" || since(lost[0].Slot.Start) != 5*time.Minute || len(said) != 1 || since(said[0].SlotStart) != 5*time.Minute {
			t.Errorf("lost attempts: %+v, and in the ledger: %+v, want that of victim at the slot from 5m", lost, said)
		}
		link.Mend()
	})
}

// A run goes on into the next slot, and its worker is killed there: its window keeps that slot from being begun in
// time, and only the next worker can say so.
func TestASlotThatADeadRunHasKeptFromOthersIsMissed(t *testing.T) {
	for _, c := range []struct {
		catchUp workerlease.CatchUp
		missed  []time.Duration
		ran     []time.Duration
	}{
		{workerlease.CatchUpNone, minutes(2), minutes(3)},
		{workerlease.CatchUpNewest, nil, minutes(2, 3)},
	} {
		bubble(t, c.catchUp.String(), func(t *testing.T) {
			inner, link := cut(t)
			o := minutely("victim", 0)
			o.FailoverWithin, o.Job.CatchUp = 30*time.Second, c.catchUp
			at(time.Second)
			first := runsAtOnce(t, inner.Handle(), o, func(context.Context, workerlease.Lease) error { return nil })
			at(3 * time.Second)
			first.cancel()
			start(t, setup{ledger: link, Options: o, task: untilTold})
			j := &job{each: time.Second}
			o.InstanceID, o.Priority = "b", 1
			b := runs(t, inner, o, j.run)
			at(2*time.Minute + time.Second)
			link.Break(faultstore.Down())
			at(3*time.Minute + 50*time.Second)
			var missed []time.Duration
			for _, m := range observed[event.Missed](b.worker) {
				missed = append(missed, since(m.Slot.Start))
			}
			equal(t, "missed", missed, c.missed...)
			equal(t, "run", j.ran(), c.ran...)
			if n := len(observed[event.WorkerDied](b.worker)); n != 1 {
				t.Errorf("%d attempts lost, want one", n)
			}
			link.Mend()
		})
	}
}

// A worker that starts at the last moment finds no slot of a type that was never done missed.
func TestAFirstWorkerThatComesAtTheLastMomentHasMissedNothing(t *testing.T) {
	for early := 5 * time.Millisecond; early <= 60*time.Millisecond; early += 5 * time.Millisecond {
		bubble(t, early.String(), func(t *testing.T) {
			at(15*time.Second - early)
			slow := faulty(t, eachCall(faultstore.Fault{After: 20 * time.Millisecond}))
			j := &job{each: time.Second}
			w := runsAtOnce(t, slow, minutely("a", 0), j.run)
			at(70 * time.Second)
			if missed := observed[event.Missed](w.worker); len(missed) > 0 {
				t.Errorf("observed %+v, want none", missed)
			}
			if ran := j.ran(); len(ran) == 0 || ran[len(ran)-1] != time.Minute {
				t.Errorf("run %v, want the next slot at least", ran)
			}
		})
	}
}

// Whoever comes while the slot that was given up isn't over, in time for it or not, knows that it was told.
func TestAWorkerThatComesAfterwardsSaysNothingOfASlotThatIsGivenUp(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		task := func(context.Context, workerlease.Lease) error { return errWork }
		start(t, setup{ledger: ledger.Handle(), Options: hourly("a", 0, 1), task: task, asGiven: true})
		for _, minute := range []int{3, 6, 20} {
			at(time.Hour + time.Duration(minute)*time.Minute)
			b := start(t, setup{ledger: ledger.Handle(), Options: hourly("b", 1, 1), task: task, asGiven: true})
			at(time.Hour + time.Duration(minute+2)*time.Minute)
			if e := observed[event.Exhausted](b); len(e) > 0 || b.Status().GivenUp > 0 {
				t.Errorf("%d min into the slot b reports %+v, and its status is %+v", minute, e, b.Status())
			}
		}
	})
}

// Who was there says that a slot is given up, also if it reads of that late, or gives it up itself after another had a lower limit.
func TestAWorkerThatWasThereSaysThatASlotIsGivenUp(t *testing.T) {
	for _, most := range []int{1, 3} {
		bubble(t, map[int]string{1: "one attempt", 3: "three attempts"}[most], func(t *testing.T) {
			inner, link := cut(t)
			task := func(context.Context, workerlease.Lease) error { return errWork }
			start(t, setup{ledger: inner, Options: hourly("a", 0, 1), task: task})
			at(30 * time.Minute)
			b := start(t, setup{ledger: link, Options: hourly("b", 1, most), task: task})
			at(59 * time.Minute)
			link.Break(faultstore.Down())
			at(time.Hour + 5*time.Second)
			link.Mend()
			at(time.Hour + 55*time.Minute)
			if e := observed[event.Exhausted](b); len(e) != 1 || b.Status().GivenUp != 1 {
				t.Errorf("b reports %+v, and its status is %+v, want that the slot is given up, once", e, b.Status())
			}
		})
	}
}
