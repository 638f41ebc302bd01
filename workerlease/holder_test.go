package workerlease_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease/event"
)

// changes are the holders that a worker observed, a release with a minus.
func changes(w *worker) []string {
	var out []string
	for _, e := range observed[event.HolderChanged](w) {
		name := e.Holder.InstanceID
		if e.Released {
			name = "-" + name
		}
		out = append(out, name)
	}
	return out
}

func TestEverybodyKnowsWhoHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		high := start(t, setup{ledger: inner.Handle(), Options: parted("high", 0, 20*time.Second)})
		low := start(t, setup{ledger: link, Options: parted("low", 1, 20*time.Second)})
		third := start(t, setup{ledger: inner.Handle(), Options: parted("third", 2, 20*time.Second)})
		check := func(when time.Duration, want string, who ...*worker) {
			t.Helper()
			at(when)
			for _, w := range who {
				name := w.Status().InstanceID
				h, ok := w.Holder()
				if h.InstanceID != want || ok != (want != "") {
					t.Errorf("at %v, %s.Holder() = %+v, %v, want %q", when, name, h, ok, want)
				}
				if w.IsHolder() != (name == want) {
					t.Errorf("at %v, %s.IsHolder() = %v", when, name, w.IsHolder())
				}
			}
		}
		check(time.Minute, "", high, low, third)
		check(4*time.Minute+55*time.Second, "", high, low, third) // It is claimed, but has not begun.
		check(5*time.Minute+time.Second, "high", high, low, third)
		for when := 5*time.Minute + 2*time.Second; when < 7*time.Minute; when += 900 * time.Millisecond {
			check(when, "high", high, low, third) // also right after the end of a part, before they look
		}
		check(7*time.Minute, "high", high, low, third)
		h, _ := third.Holder()
		if h.Priority != 0 || h.Token != high.turn(t, 0).lease.Token || since(h.From) != 5*time.Minute || since(h.Until) <= 7*time.Minute {
			t.Errorf("Holder() = %+v, want the lease of 5m, extended beyond 7m", h)
		}
		if ago := 7*time.Minute - since(h.Claimed); ago < 0 || ago > 20*time.Second {
			t.Errorf("the newest claim was made at %v, want less than 20 s ago", since(h.Claimed))
		}
		high.stop(t)
		check(7*time.Minute+25*time.Second, "low", low, third)
		link.Break(faultstore.Down()) // As if it were dead.
		check(8*time.Minute, "third", third)
		check(9*time.Minute, "third", third)
		link.Mend()
		// The second one's claim stands above the release when the third looks.
		equal(t, "holders that the third observed", changes(third), "high", "low", "third")
		equal(t, "holders that the first observed", changes(high), "high", "-high")
		at(9*time.Minute + 30*time.Second)
		equal(t, "holders that the second observed", changes(low), "high", "-high", "low", "third")
	})
}

func TestAHolderThatGoesOnIsNoNews(t *testing.T) {
	for _, continuous := range []bool{false, true} {
		bubble(t, fmt.Sprint(continuous), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := parted("a", 0, 20*time.Second)
			o.Continuous = continuous
			a := start(t, setup{ledger: ledger.Handle(), Options: o})
			o.InstanceID, o.Priority = "b", 1
			b := start(t, setup{ledger: ledger.Handle(), Options: o})
			at(22 * time.Minute)
			equal(t, "holders that a observed", changes(a), "a")
			equal(t, "holders that b observed", changes(b), "a")
		})
	}
}

func TestAChangeBetweenTwoOfOneNameIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("same", 0)
		w := start(t, setup{ledger: ledger, Options: o})
		at(4*time.Minute + 45*time.Second)
		// Another of that name, which runs elsewhere, was faster; and then this one.
		other := planted(1, 5*time.Minute, 10*time.Minute)
		other.InstanceID, other.Worker = "same", store.Worker{Host: "elsewhere", PID: 1}
		ledger.Put(other)
		third := start(t, setup{ledger: ledger.Handle(), Options: named("third", 1)})
		at(11 * time.Minute)
		equal(t, "slots", w.starts(), 10*time.Minute)
		for name, each := range map[string]*worker{"the worker": w, "a third": third} {
			equal(t, "holders that "+name+" observed", changes(each), "same", "same")
		}
		at(16 * time.Minute)
		if n := len(changes(third)); n != 2 {
			t.Errorf("%d changes were observed, want none when it goes on", n)
		}
	})
}

func TestAHolderOfLongAgoIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		at(61 * time.Minute)
		old := planted(1, 5*time.Minute, 10*time.Minute)
		old.InstanceID = "gone"
		ledger.Put(old)
		w := start(t, setup{ledger: ledger, Options: named("new", 0)})
		at(66 * time.Minute)
		equal(t, "holders that were observed", changes(w), "new")
	})
}

func TestADoneRecordShowsANewcomerWhichWorkerHadTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{each: time.Second}
		o := perSlot("a", 0)
		o.FailoverWithin = 2 * time.Minute
		runs(t, ledger.Handle(), o, j.run)
		at(5*time.Minute + 30*time.Second)
		head := newest(t, ledger)
		if head.Kind != store.KindDone {
			t.Fatalf("the head is a %s, want a done record", head.Kind)
		}
		o.InstanceID, o.Priority = "b", 1
		b := start(t, setup{ledger: ledger.Handle(), joins: true, Options: o, task: j.run})
		at(5*time.Minute + 33*time.Second)
		e := observed[event.HolderChanged](b)
		if len(e) != 1 {
			t.Fatalf("observed %+v, want one holder", e)
		}
		h := e[0].Holder
		if h.InstanceID != "a" || h.Token != head.Token || since(h.From) != 5*time.Minute || !h.Until.Equal(head.WindowEnd) || !h.Claimed.IsZero() {
			t.Errorf("observed %+v, want a, with token %d, from 5m until %v", h, head.Token, since(head.WindowEnd))
		}
		if now, ok := b.Holder(); ok {
			t.Errorf("Holder() = %+v, want nobody: the job is done", now)
		}
		equal(t, "the slot", j.of(5*time.Minute), "a")
		if all := changes(b); slices.Contains(all, "b") {
			t.Errorf("observed %v", all)
		}
	})
}
