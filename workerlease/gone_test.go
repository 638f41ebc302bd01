package workerlease_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A leader, or a plain worker, is killed: who takes over says so once, if the dead one would have gone on.
func TestALeaderThatIsKilledIsReportedOnce(t *testing.T) {
	plain := workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 10 * time.Second}
	leader := plain
	leader.Continuous = true
	stays := workerlease.Options{LeaseInterval: 5 * time.Minute, Continuous: true, NoFailback: true}
	whole := workerlease.Options{LeaseInterval: 5 * time.Minute}
	for name, c := range map[string]struct {
		options workerlease.Options
		killed  time.Duration
		slot    time.Duration // of which that is said; -1: nothing is
	}{
		"a plain worker":                 {plain, 6 * time.Minute, 5 * time.Minute},
		"a leader":                       {leader, 6 * time.Minute, 5 * time.Minute},
		"a leader that has gone on":      {leader, 11 * time.Minute, 10 * time.Minute},
		"a leader that has a whole slot": {stays, 11 * time.Minute, -1},
		"who holds a whole slot":         {whole, 6 * time.Minute, -1}, // Another has the next one, as always.
		"nobody":                         {leader, time.Hour, -1},
	} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			o := func(name string, priority int) workerlease.Options {
				o := c.options
				o.InstanceID, o.Priority = name, priority
				return o
			}
			start(t, setup{ledger: link, Options: o("victim", 0)})
			b := start(t, setup{ledger: inner, Options: o("b", 1)})
			third := start(t, setup{ledger: inner, Options: o("c", 2)})
			at(c.killed)
			link.Break(faultstore.Down())
			at(21 * time.Minute)
			link.Mend()
			lost, said := append(observed[event.WorkerDied](b), observed[event.WorkerDied](third)...), died(t, inner)
			if c.slot < 0 {
				if len(lost) > 0 || len(said) > 0 {
					t.Errorf("told %+v, in the ledger %+v, want nothing", lost, said)
				}
				return
			}
			if len(lost) != 1 || lost[0].Holder != "victim" || lost[0].Attempt != 0 || since(lost[0].Slot.Start) != c.slot {
				t.Errorf("told %+v, want once that victim has died in the slot from %s", lost, c.slot)
			}
			if len(said) != 1 || said[0].InstanceID != "victim" || since(said[0].SlotStart) != c.slot {
				t.Errorf("in the ledger %+v, want once that victim has died in the slot from %s", said, c.slot)
			}
		})
	}
}

// A leader that stops, fails, pauses, or makes way for another at a boundary has not died.
func TestALeaderThatMakesWayHasNotDied(t *testing.T) {
	leader := func(name string, priority int) workerlease.Options {
		return workerlease.Options{InstanceID: name, Priority: priority, LeaseInterval: 5 * time.Minute, FailoverWithin: 10 * time.Second, Continuous: true}
	}
	for name, act := range map[string]func(t *testing.T, l store.Ledger, b *worker){
		"stopped":   func(t *testing.T, _ store.Ledger, b *worker) { must(t, b.StopLeasing(t.Context())) },
		"fails":     func(_ *testing.T, _ store.Ledger, b *worker) { b.turns[0].lease.FailedWith(errWork) },
		"outranked": func(t *testing.T, l store.Ledger, _ *worker) { start(t, setup{ledger: l, Options: leader("a", 0)}) },
		"paused":    func(t *testing.T, l store.Ledger, _ *worker) { pause(t, l, 7*time.Minute, true) },
	} {
		bubble(t, name, func(t *testing.T) {
			inner, _ := cut(t)
			b := start(t, setup{ledger: inner, Options: leader("b", 1)})
			c := start(t, setup{ledger: inner, Options: leader("c", 2)})
			at(6 * time.Minute)
			act(t, inner, b)
			at(21 * time.Minute)
			lost := append(observed[event.WorkerDied](b), observed[event.WorkerDied](c)...)
			if said := died(t, inner); len(lost) > 0 || len(said) > 0 {
				t.Errorf("told %+v, in the ledger %+v, want nothing", lost, said)
			}
		})
	}
}

// The claim for the last attempt lands, and its worker hears of that only after its window: it takes the attempt back. Meanwhile
// nobody gives the slot up, or calls it dead.
func TestTheLastAttemptIsHeardOutBeforeASlotIsGivenUp(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		var landed atomic.Int64 // when the claim of the last attempt has
		link := faultstore.New(inner, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			now, claimed := since(c.At), time.Duration(landed.Load())
			if claimed == 0 && c.Op == faultstore.OpAppend && c.Record.Kind == store.KindGrant && c.Record.Attempt == 2 {
				landed.Store(int64(now))
				return faultstore.LostReply()
			}
			if claimed != 0 && now < claimed+35*time.Second {
				return faultstore.Down()
			}
			return faultstore.Fault{}
		}})
		o := perSlot("a", 0)
		o.FailoverWithin, o.Job.MaxAttempts = 30*time.Second, 2
		work := func(_ context.Context, l workerlease.Lease) error {
			if l.Attempt == 1 {
				return errWork
			}
			return nil
		}
		a := start(t, setup{ledger: inner.Handle(), Options: o, task: work})
		o.InstanceID, o.Priority = "b", 1
		b := start(t, setup{ledger: link, Options: o, task: work})
		at(7 * time.Minute)
		if landed.Load() == 0 {
			t.Fatal("b has not claimed the last attempt")
		}
		for _, w := range []*worker{a, b} {
			if n, dead := len(observed[event.Exhausted](w)), observed[event.WorkerDied](w); n > 0 || len(dead) > 0 {
				t.Errorf("%s gives the slot up %d times, and says that %+v have died, want neither", w.Status().InstanceID, n, dead)
			}
		}
		if done := a.Status().DoneUntil; !done.After(t0.Add(5 * time.Minute)) {
			t.Errorf("done until %v, want the slot from 5m done", done)
		}
	})
}

// The next slot is claimed ahead while a run goes on to the end of its own: its worker lives, and says that it is done.
func TestARunThatLastsToTheEndOfItsSlotIsNoDeath(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := minutely("a", 1)
		o.Job.Overrun, o.Job.MaxAttempts = workerlease.Stop, 1
		task := func(ctx context.Context, _ workerlease.Lease) error { return waits(ctx, 56*time.Second) }
		start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: task})
		at(20 * time.Second)
		o.InstanceID, o.Priority = "b", 0
		b := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: task})
		at(3 * time.Minute)
		if dead, s := observed[event.WorkerDied](b), b.Status(); len(dead) > 0 || s.GivenUp > 0 || len(died(t, ledger)) > 0 {
			t.Errorf("told dead %+v, given up %d, in the ledger %+v, want nothing of it", dead, s.GivenUp, died(t, ledger))
		}
	})
}

// An operator ends what was in force, and gives an order on top: nobody has died.
func TestWhatAnOperatorHasEndedIsNoDeath(t *testing.T) {
	for name, job := range map[string]*workerlease.Job{"a leader": nil, "a job": {}} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := workerlease.Options{InstanceID: "a", LeaseInterval: 5 * time.Minute, FailoverWithin: 10 * time.Second, Continuous: job == nil, Job: job}
			task := func(ctx context.Context, _ workerlease.Lease) error { return waits(ctx, 2*time.Minute) }
			a := start(t, setup{ledger: ledger.Handle(), Options: o, task: task})
			o.InstanceID, o.Priority = "b", 1
			b := start(t, setup{ledger: ledger.Handle(), Options: o, task: task})
			at(6 * time.Minute)
			operator := operate.On(ledger.Handle())
			_, err := operator.Override(t.Context(), operate.OverrideOptions{WorkerType: "job", InstanceID: "ann", Reason: "test", Seq: newest(t, ledger).Seq})
			must(t, err)
			_, err = operator.Give(t.Context(), operate.Order{WorkerType: "job", Kind: store.OrderDrain, Target: "elsewhere", For: 2 * time.Second, InstanceID: "ann"})
			must(t, err)
			at(21 * time.Minute)
			if dead := append(observed[event.WorkerDied](a), observed[event.WorkerDied](b)...); len(dead) > 0 {
				t.Errorf("told dead %+v, want nobody", dead)
			}
		})
	}
}
