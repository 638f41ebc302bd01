package workerlease_test

import (
	"context"
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
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A jump of the store's clock ends the lease of a long slot. The worker gives the rest back,
// and claims it again, instead of leaving it to nobody.
func TestTheRestOfASlotThatAClockJumpEndedIsUsed(t *testing.T) {
	for _, by := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond, 10 * time.Second, -10 * time.Second} {
		for _, within := range []time.Duration{0, 10 * time.Minute} {
			bubble(t, fmt.Sprint(by, " ", within), func(t *testing.T) {
				h := stepped(memory.New(memory.Options{}), 26*time.Hour, ever, by)
				o := slotted("a", 0, 24*time.Hour, within)
				code := 3 * time.Second
				w := start(t, setup{ledger: h, Options: o, work: func(ctx context.Context, _ workerlease.Lease) {
					<-ctx.Done()
					time.Sleep(code)
				}})
				// Another worker of the process notices the jump.
				at(25 * time.Hour)
				start(t, setup{ledger: h, client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: 4 * time.Minute}})
				at(47 * time.Hour)
				u := w.history()
				if len(u) != 2 {
					t.Fatalf("%d leases, want that of the slot, and that of its rest", len(u))
				}
				ended, again := u[0], u[1]
				if ended.why != workerlease.ClockJumped || ended.ended > 26*time.Hour+5*time.Minute {
					t.Errorf("the first ended at %v: %s", ended.ended, ended.why)
				}
				if again.allocated < ended.ended+code || again.allocated > ended.ended+time.Minute || again.lease.Token <= ended.lease.Token {
					t.Errorf("the second began at %v, want it within a minute of %v", again.allocated, ended.ended)
				}
				if again.ended != 0 || w.Status().Missed != 0 {
					t.Errorf("status %v, want the lease to last", w.Status())
				}
				if s := w.Status(); !s.Healthy() {
					t.Errorf("status %v, want it healthy", s)
				}
			})
		}
	}
}

// A slot is won, and before it begins the store's clock jumps. The worker doesn't begin by the old
// claim; but it gives the slot back and claims it anew, instead of leaving it to nobody.
func TestASlotThatWasWonByAnotherClockIsClaimedAnew(t *testing.T) {
	for _, by := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond} {
		bubble(t, fmt.Sprint(by), func(t *testing.T) {
			h := stepped(memory.New(memory.Options{}), 2*time.Hour-5*time.Second, ever, by)
			o := slotted("a", 0, time.Hour, 0)
			w := start(t, setup{ledger: h, Options: o})
			// Another worker of the process notices the jump.
			at(2*time.Hour - time.Minute)
			start(t, setup{ledger: h, client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: 3 * time.Second}})
			at(2*time.Hour + 30*time.Minute)
			grants, begun := 0, time.Duration(0)
			for _, r := range records(t, h) {
				if r.Kind == store.KindGrant && since(r.SlotStart) == 2*time.Hour {
					grants++
				}
			}
			for _, u := range w.history() {
				if since(u.lease.Slot.Start) == 2*time.Hour {
					begun = u.allocated
				}
			}
			if grants != 2 {
				t.Errorf("%d grants of the slot, want the one that was given back and another", grants)
			}
			if begun == 0 || begun > 2*time.Hour+time.Minute || w.Status().Missed != 0 {
				t.Errorf("the slot began at %v, and %d were missed; want it within a minute of its boundary", begun, w.Status().Missed)
			}
		})
	}
}

// The members of a group may still be at work: none gives back what all hold.
func TestNoMemberGivesBackTheLeaseOfItsGroup(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		h := stepped(memory.New(memory.Options{}), 90*time.Minute, ever, 300*time.Millisecond)
		o := named("a", 0)
		o.LeaseInterval, o.Group = time.Hour, "g"
		w := start(t, setup{ledger: h, Options: o})
		start(t, setup{ledger: h, client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Minute}})
		at(110 * time.Minute)
		if why := w.turn(t, 0).why; why != workerlease.ClockJumped {
			t.Errorf("the lease ended: %q, want by the jump", why)
		}
		for _, r := range records(t, h.Ledger) {
			if r.Kind != store.KindGrant {
				t.Errorf("a %s in the ledger, want none", r.Kind)
			}
		}
	})
}

// A worker whose code overruns gives back the next slot, which it has won, when it can't
// begin that in time.
func TestACallbackThatOverrunsDoesNotKeepTheNextSlotFromOthers(t *testing.T) {
	for _, long := range []time.Duration{time.Hour + time.Minute, 90 * time.Minute} {
		bubble(t, long.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := slotted("a", 0, time.Hour, 0)
			first := true
			a := start(t, setup{ledger: ledger.Handle(), Options: o, work: func(ctx context.Context, _ workerlease.Lease) {
				if first {
					first = false
					time.Sleep(long)
					return
				}
				<-ctx.Done()
			}})
			at(2*time.Hour + 10*time.Minute)
			b := slotted("b", 1, time.Hour, 0)
			other := start(t, setup{ledger: ledger.Handle(), joins: true, Options: b})
			at(2*time.Hour + 50*time.Minute)
			if long < 70*time.Minute {
				if began := a.turn(t, 1).allocated; began > 2*time.Hour+time.Minute+100*time.Millisecond {
					t.Errorf("a, which was little late, began at %v, want it at 2h1m", began)
				}
				return
			}
			if len(other.history()) != 0 {
				return
			}
			t.Errorf("b had no lease while a overran: %v", holders(t, ledger))
		})
	}
}

// If nobody else wants it, the worker has the rest itself once its code has returned.
func TestAWorkerWhoseCodeHasReturnedClaimsTheRestThatItGaveBack(t *testing.T) {
	for _, within := range []time.Duration{0, 4 * time.Minute} {
		bubble(t, within.String(), func(t *testing.T) {
			o := slotted("a", 0, time.Hour, within)
			first := true
			a := start(t, setup{Options: o, work: func(ctx context.Context, _ workerlease.Lease) {
				if first {
					first = false
					time.Sleep(90 * time.Minute)
					return
				}
				<-ctx.Done()
			}})
			at(2*time.Hour + 50*time.Minute)
			if u := a.turn(t, 1); u.allocated < 2*time.Hour+30*time.Minute || u.allocated > 2*time.Hour+31*time.Minute {
				t.Errorf("began again at %v, want it right after the code returned at 2h30m", u.allocated)
			}
			at(3*time.Hour + time.Minute)
			if s := a.Status(); !s.Holding || since(s.Lease.Slot.Start) != 3*time.Hour {
				t.Errorf("status %v, want it holding the slot of 3h", s)
			}
		})
	}
}

// The code of a job overruns into the slot that its worker has won, which it gives back. Meanwhile the
// store is down, and the code returns: done. The slot is given back all the same, and run.
func TestASlotIsGivenBackAlsoIfWorkIsDoneMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := faulty(t, during(10*time.Minute+12*time.Second, 10*time.Minute+35*time.Second, faultstore.Down()))
		var ran []time.Duration
		o := workerlease.Options{WorkerType: "job", Job: &workerlease.Job{MaxAttempts: 1}}
		w := start(t, setup{ledger: l, Options: o, task: func(_ context.Context, l workerlease.Lease) error {
			if ran = append(ran, since(l.Slot.Start)); len(ran) == 1 {
				time.Sleep(5*time.Minute + 30*time.Second) // beyond its lease
			}
			return nil
		}})
		at(21 * time.Minute)
		equal(t, "slots that were run", ran, minutes(5, 10, 15, 20)...)
		if e := observed[event.Exhausted](w); len(e) > 0 {
			t.Errorf("Exhausted events = %+v, and no slot was begun in vain", e)
		}
	})
}

func TestATaskGivesBackItsSlotWithoutAFailure(t *testing.T) {
	bubble(t, "to another worker", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := parted("a", 0, 20*time.Second)
		a := runs(t, ledger.Handle(), o, func(ctx context.Context, _ workerlease.Lease) error {
			time.Sleep(time.Minute)
			return workerlease.ErrGiveBack
		})
		o.InstanceID, o.Priority = "b", 1
		var began []time.Duration
		runs(t, ledger.Handle(), o, func(ctx context.Context, _ workerlease.Lease) error {
			began = append(began, time.Since(t0))
			<-ctx.Done()
			return ctx.Err()
		})
		at(9 * time.Minute)
		if len(began) != 1 || began[0] < 6*time.Minute || began[0] > 6*time.Minute+25*time.Second {
			t.Errorf("the other began at %v, want once, when the rest was given back", began)
		}
		for _, not := range []string{"TaskFailed", "TaskSucceeded", "SteppedBack"} {
			if slices.Contains(a.names(0), not) {
				t.Errorf("%s was reported", not)
			}
		}
		if o := told(t, ledger); len(o) > 0 {
			t.Errorf("the ledger tells %+v, want no failure", o)
		}
	})
}

func TestATaskThatHasFailedAndReturnsNilKeepsItsLease(t *testing.T) {
	bubble(t, "without a success", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := runs(t, ledger.Handle(), named("a", 0), func(_ context.Context, l workerlease.Lease) error {
			l.FailedWith(errWork)
			return nil
		})
		at(8 * time.Minute)
		if len(holders(t, ledger)) != 1 {
			t.Errorf("holders are %v, want one", holders(t, ledger))
		}
		got := a.names(0)
		for _, not := range []string{"TaskSucceeded", "TaskFailed", "Released"} {
			if slices.Contains(got, not) {
				t.Errorf("%s was reported", not)
			}
		}
		if !slices.Contains(got, "Faltered") {
			t.Errorf("%v was reported, want the failure", got)
		}
	})
}

// A record of another worker or an operator, which changes no term, comes before the first release, of a worker whose task
// fails or that is stopped.
func TestAReleaseIsMadeAgainAfterARecordThatChangesNoTerm(t *testing.T) {
	for _, kind := range []store.Kind{store.KindDone, store.KindOutcome, store.KindOrder, "audit"} {
		for _, fails := range []bool{true, false} {
			bubble(t, fmt.Sprint(kind, ", fails ", fails), func(t *testing.T) {
				inner, first := memory.New(memory.Options{}), true
				l := &hooked{Ledger: inner.Handle(), beforeAppend: func(r store.Record) {
					if r.Kind == store.KindRelease && first {
						first = false
						other := newest(t, inner)
						other.Seq, other.Kind, other.WindowStart, other.Metadata = r.Seq, kind, other.WindowEnd, ""
						inner.Put(other)
					}
				}}
				w := start(t, setup{ledger: l, Options: named("a", 0), task: func(ctx context.Context, _ workerlease.Lease) error {
					if !fails {
						<-ctx.Done()
					}
					return errWork
				}})
				at(6 * time.Minute)
				if !fails {
					must(t, w.StopLeasing(t.Context()))
				}
				got := records(t, inner)
				if len(got) != 3 || got[2].Kind != store.KindRelease || got[2].Claim != got[0].Claim {
					t.Fatalf("the records are %+v, want a grant, one of kind %s, and the release of the grant's term", got, kind)
				}
				if o, ok := got[2].Outcome(); fails && (!ok || o.Error != errWork.Error()) {
					t.Errorf("the release says %+v, want that the task has failed", o)
				}
			})
		}
	}
}

// Each release within a slot is taken up at once, however many came before: a worker lets others go first after its own, until one has.
func TestEachReleaseInASlotIsTakenUpAtOnce(t *testing.T) {
	for _, d := range []time.Duration{10 * time.Second, time.Minute} {
		bubble(t, d.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			var workers []*worker
			for i, name := range []string{"a", "b", "c"} {
				o := slotted(name, i, 10*time.Minute, d)
				workers = append(workers, start(t, setup{Options: o, ledger: ledger.Handle()}))
			}
			at(10*time.Minute + 20*time.Second)
			for range 5 {
				give(t, ledger, operate.Order{Kind: store.OrderRelease, WorkerType: "job"})
				time.Sleep(80 * time.Second)
			}
			all := turnsOf(workers...)
			if len(all) != 6 {
				t.Fatalf("%d leases after five releases, want 6", len(all))
			}
			for i, u := range all[1:] {
				if gap := u.allocated - all[i].ended; gap > 20*time.Millisecond {
					t.Errorf("nobody works for %v after release %d", gap, i+1)
				}
			}
		})
	}
}
