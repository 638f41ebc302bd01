package workerlease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestALeaseWhoseRecordIsAnothersByNowEndsAndIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := start(t, setup{ledger: ledger})
		at(6 * time.Minute)
		// As after a rollback: the key is free again, and another takes it.
		ledger.Put(planted(1, 5*time.Minute, 10*time.Minute))
		at(10*time.Minute - lead + time.Second)
		u := w.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrRecordVanished) || u.why != workerlease.RecordVanished || u.expiries != 1 {
			t.Errorf("cause %v, why %q, %d expiries; want an end because of the record", u.cause, u.why, u.expiries)
		}
		if e := observed[workerlease.Vanished](w); len(e) != 1 || e[0].Seq != 1 || !w.reported(workerlease.ErrRecordVanished) {
			t.Errorf("Vanished events = %+v, want one of seq 1, and an error reported", e)
		}
		at(11 * time.Minute)
		if l := w.turn(t, 1).lease; !l.Valid() || l.Slot.Start != t0.Add(10*time.Minute) {
			t.Errorf("the next lease is %+v, want that of the next slot", l)
		}
	})
}

func TestALeaseWhoseRecordIsNotSeenIsReportedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := t0.Add(16 * time.Minute)
		ledger := faulty(t, func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpTail && c.At.After(since) {
				return faultstore.StaleRead(1)
			}
			return faultstore.Fault{}
		})
		w := start(t, setup{ledger: ledger})
		at(16 * time.Minute)
		if e := observed[workerlease.Vanished](w); len(e) != 0 {
			t.Fatalf("Vanished events = %+v while all is well", e)
		}
		at(20*time.Minute - lead + time.Second)
		if e := observed[workerlease.Vanished](w); len(e) != 1 || !w.reported(workerlease.ErrRecordVanished) {
			t.Errorf("Vanished events = %+v, want one", e)
		}
		if u := w.turn(t, 2); u.expiries != 0 || !u.lease.Valid() {
			t.Errorf("the lease ended with %v: a stale read proves nothing", u.cause)
		}
	})
}
