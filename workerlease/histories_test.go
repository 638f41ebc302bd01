package workerlease_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// The histories here and in histories_more_test.go went wrong once. The comment on each
// says how; the test shows how it goes now.

// attempt claims what is left of the slot.
func attempt(t *testing.T, l store.Ledger, o workerlease.Options) (*workerlease.Claim, error) {
	t.Helper()
	return workerlease.NewClient(l, workerlease.ClientOptions{}).TryClaim(t.Context(), o)
}

// claimed is attempt where nothing is in the way.
func claimed(t *testing.T, l store.Ledger, o workerlease.Options) *workerlease.Claim {
	t.Helper()
	claim, err := attempt(t, l, o)
	must(t, err)
	return claim
}

// doneBy is a done record after head.
func doneBy(head store.Record, until time.Time) store.Record {
	head.Seq, head.Kind, head.WindowStart, head.ReadAt = head.Seq+1, store.KindDone, head.WindowEnd, time.Time{}
	head.DoneUntil = until
	return head
}

// CatchUpNewest. Claims for the slot of 15 min open at 14:50; it is won while the task for the slot of 10 min is at work, by
// the same worker or by another, and "the slot before is not done" is decided then (confirm sets Next.Missed). The task
// returns nil at 14:55, and its done record gets into the ledger. At 15 min the task is begun for the slot of 10 min
// again, after its done record.
func TestASlotDoneInTheLastLeadIsNotRunAgainAsMissed(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		bubble(t, fmt.Sprint(names), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Second, ten: 4*time.Minute + 55*time.Second}
			for _, name := range names {
				o := perSlot(name, 0)
				o.Job.CatchUp, o.TieBreak = workerlease.CatchUpNewest, priority.Rotate // The other one wins the next slot.
				runs(t, ledger.Handle(), o, j.run)
			}
			at(16 * time.Minute)
			j.once(t, 10*time.Minute)
		})
	}
}

// The slot of 10 min is missed. In the next, the task is called for it first; its done record is on its way (200 ms to
// the store and back) when the quick task for the slot itself returns nil, too. The reply for the first record clears
// Closing, into which the second had been noted: the slot of 15 min is never closed. A standby runs it again, or
// the next slot does.
func TestADoneSlotIsRecordedAlthoughAnotherDoneRecordIsOnItsWay(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		bubble(t, fmt.Sprint(names), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			j := &job{each: 50 * time.Millisecond}
			var links []*faultstore.Ledger
			for i, name := range names {
				link := struck(t, inner.Handle(), eachCall(faultstore.Fault{After: 200 * time.Millisecond}, faultstore.OpAppend))
				links = append(links, link)
				o := perSlot(name, i)
				o.Job.CatchUp = workerlease.CatchUpNewest
				runs(t, link, o, j.run)
			}
			at(9 * time.Minute) // The slot of 5m is done.
			for _, l := range links {
				l.Break(faultstore.Down())
			}
			at(14*time.Minute + 58*time.Second)
			for _, l := range links {
				l.Mend()
			}
			at(21 * time.Minute)
			j.once(t, 15*time.Minute)
		})
	}
}

// A claim is worked under, and its worker loses the store in mid-slot: the lease ends with its window, and Claim.end
// stops the worker. The work is done all the same, and the user says so: Done returns nil, since the worker has ended,
// but nothing is in the ledger. The next who tries gets the slot, and does the work again.
func TestDoneOfAClaimThatHasEndedDoesNotPretend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		at(5*time.Minute + time.Second)
		claim := claimed(t, link, perSlot("a", 0))
		link.Break(faultstore.Down())
		<-claim.Context().Done()
		time.Sleep(11 * time.Second)
		link.Mend()
		said := claim.Complete(t.Context())
		if said == nil && newest(t, inner).DoneUntil.IsZero() {
			t.Errorf("Done = nil at %v, and no done record is in the ledger", time.Since(t0))
		}
		if again, err := attempt(t, inner.Handle(), perSlot("b", 0)); err == nil {
			if said == nil {
				t.Errorf("the slot was claimed again, attempt %d, after Done had returned nil", again.Lease.Attempt)
			}
			_ = again.Release(t.Context())
		}
	})
}

// The context of Run ends; the task takes beyond the end of its slot, and returns nil, with the store in perfect health. The
// machine drops the done record, since the slot of the head is over. So with CatchUpNewest the work is done again.
func TestATaskThatIsDoneLateWhileStoppingIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := perSlot("a", 0)
		o.Job.CatchUp = workerlease.CatchUpNewest
		r := runs(t, ledger, o, (&job{ten: 6 * time.Minute}).run)
		at(14 * time.Minute)
		r.cancel()
		at(17 * time.Minute)
		if len(r.ended) == 0 {
			t.Error("Run has not returned")
		}
		if done := since(newest(t, ledger).DoneUntil); done < 15*time.Minute {
			t.Errorf("done until %v, want 15m: the task returned nil, and Run said that nothing was left behind", done)
		}
	})
}

// A leader goes on into the next slot (Continuous, NoFailback) and its append takes until after the boundary, as if
// the process or the store had been suspended. The lease has ended, so it must not be worked under; but the machine
// then turns to the slot after (fall: WonEnd lies after Slot.Start, and there is nobody to stand by for), so nobody
// works for a whole slot, though the one who has it lives, and could release and claim it. Without NoFailback it does.
func TestALeaderWhoseExtensionIsKnownTooLateComesBackSoon(t *testing.T) {
	for _, stay := range []bool{false, true} {
		bubble(t, fmt.Sprint("NoFailback ", stay), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			slow := &hooked{Ledger: inner.Handle(), afterAppend: func(r store.Record) {
				if since(r.WindowStart) == 10*time.Minute && r.Kind == store.KindGrant {
					time.Sleep(10*time.Minute + 2*time.Second - time.Since(t0)) // heeds no context
				}
			}}
			o := named("a", 0)
			o.Continuous, o.NoFailback = true, stay
			w := start(t, setup{Options: o, ledger: slow})
			at(12 * time.Minute)
			if !w.IsHolder() {
				t.Errorf("nobody works at %v; records: %d, leases of %v", time.Since(t0), len(records(t, inner)), w.starts())
			}
			at(16 * time.Minute)
		})
	}
}

// A Job fills in FailoverWithin, and then refuses what it has filled in: a slot of 250 ms, or a margin of 10 s,
// are fine without it, and the error names an option that was not set.
func TestAJobFillsInWhatItAccepts(t *testing.T) {
	for _, o := range []workerlease.Options{
		{WorkerType: "job", Job: &workerlease.Job{}, LeaseInterval: 250 * time.Millisecond},
		{WorkerType: "job", Job: &workerlease.Job{}, Margin: 10 * time.Second},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := workerlease.Run(ctx, memory.New(memory.Options{}), o, func(context.Context, workerlease.Lease) error { return nil })
		if err != nil && strings.Contains(err.Error(), "FailoverWithin") {
			t.Errorf("interval %v, margin %v: %v", o.LeaseInterval, o.Margin, err)
		}
	}
}

// The task for the slot of 10 min returns nil at 14:55. The worker has won the next slot at 14:50, and while a slot is
// won (blocked) nothing is sent; so the done record waits for 15 min, and a worker that dies in these 5 s leaves it unrecorded.
func TestADoneRecordIsNotHeldBackByTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		runs(t, ledger.Handle(), perSlot("a", 0), (&job{each: 4*time.Minute + 55*time.Second}).run)
		at(15*time.Minute - time.Second)
		if done := since(newest(t, ledger).DoneUntil); done != 15*time.Minute {
			t.Errorf("4 s after the task has returned: done until %v, want 15m", done)
		}
	})
}
