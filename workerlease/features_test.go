package workerlease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// The tests of this file show features that docs/coming-from.md names and that no
// other test shows alone.

func TestBackoffGoesFromMinBackoffToMaxBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Break(faultstore.Down())
		o := named("me", 0)
		o.MinBackoff, o.MaxBackoff = time.Second, 6*time.Second
		w := start(t, setup{ledger: ledger, Options: o})
		at(4 * time.Minute)
		var tries []time.Duration
		w.mu.Lock()
		for _, e := range w.events {
			if _, failed := e.Event.(event.StoreFailed); failed {
				tries = append(tries, e.at)
			}
		}
		w.mu.Unlock()
		if len(tries) < 240/6 || len(tries) > 240/3+5 {
			t.Fatalf("%d tries in 4 min, want one every 3 to 6 s", len(tries))
		}
		for i := range tries[1:] {
			// Doubled from try to try, less up to half.
			most := min(time.Second<<min(i, 10), 6*time.Second)
			if gap := tries[i+1] - tries[i]; gap < most/2 || gap > most {
				t.Errorf("wait %d took %v, want %v to %v", i+1, gap, most/2, most)
			}
		}
		// It is tried for ever.
		at(3 * time.Hour)
		if n := w.Status().Failures; n < 3*3600/6 {
			t.Errorf("%d failures in a row in 3 h, want one each 6 s at least", n)
		}
		ledger.Mend()
		at(3*time.Hour + 6*time.Minute)
		if n := len(w.history()); n == 0 {
			t.Error("no lease after the store had come back")
		}
	})
}

func TestMetadataIsStoredWithEachClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := parted("me", 0, time.Minute)
		o.Metadata = "commit 1234abc"
		start(t, setup{ledger: ledger, Options: o})
		at(11 * time.Minute)
		grants := 0
		for _, r := range records(t, ledger) {
			if r.Kind != store.KindGrant {
				continue
			}
			if grants++; r.Metadata != o.Metadata {
				t.Errorf("seq %d has metadata %q, want %q", r.Seq, r.Metadata, o.Metadata)
			}
		}
		if grants < 2 {
			t.Errorf("%d grants, want some", grants)
		}
	})
}

func TestThereIsNoGraceAfterTheLastSafeMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		o := parted("me", 0, 20*time.Second)
		o.Continuous = true
		w := start(t, setup{ledger: link, Options: o})
		at(time.Minute)
		o.InstanceID, o.Priority = "other", 1
		other := start(t, setup{ledger: inner.Handle(), Options: o})
		at(6 * time.Minute)
		link.Break(faultstore.Down()) // It can't be extended.
		head := newest(t, inner)
		at(7 * time.Minute)
		u, v := w.turn(t, 0), other.turn(t, 0)
		end := since(head.WindowEnd)
		if u.ended == 0 || u.ended >= end || end > 6*time.Minute+20*time.Second {
			t.Errorf("the context ended at %v, and the window at %v, want the context first, within 20 s", u.ended, end)
		}
		if u.lease.Valid() || w.IsHolder() {
			t.Error("the lease is valid without the store's word")
		}
		// A lease that lived on for a while would overlap with this one.
		if v.allocated <= end || v.lease.Start.Before(head.WindowEnd) {
			t.Errorf("the other began at %v in a window from %v, want it after the end of the window, %v", v.allocated, since(v.lease.Start), end)
		}
		apart(t, w, other)
	})
}

func TestAProbeDistinguishesAStoreThatIsDownFromCodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, link := cut(t)
		hang := make(chan struct{})
		w := start(t, setup{ledger: link, work: func(ctx context.Context, l workerlease.Lease) {
			<-ctx.Done()
			if since(l.Slot.Start) == 10*time.Minute {
				<-hang
			}
		}})
		check := func(when time.Duration, healthy, overrunning bool) {
			t.Helper()
			at(when)
			if s := w.Status(); s.Healthy() != healthy || s.Overrunning != overrunning {
				t.Errorf("at %v: healthy %v, overrunning %v, want %v, %v; %s", when, s.Healthy(), s.Overrunning, healthy, overrunning, s)
			}
		}
		check(time.Minute, true, false) // without a lease
		check(6*time.Minute, true, false)
		link.Break(faultstore.Down())
		check(9*time.Minute, true, false) // It doesn't need the store now.
		check(9*time.Minute+59*time.Second, false, false)
		link.Mend()
		check(11*time.Minute, true, false)
		check(15*time.Minute+10*time.Second, false, true)
		close(hang)
		check(16*time.Minute, true, false)
		w.stop(t)
		check(17*time.Minute, false, false)
		if !w.Status().Stopped {
			t.Error("Status doesn't say that it has stopped")
		}
	})
}
