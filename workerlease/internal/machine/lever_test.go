package machine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// disobeys is why a record that is about to be sent disobeys the orders of the head that was shown, or
// doesn't repeat them.
func (w *watcher) disobeys(r store.Record, at machine.Moment) error {
	if at.Epoch != w.shownIn.Epoch || r.Kind == store.KindReset {
		return nil // By another clock they may have ended; and a reset stands on what is below.
	}
	now := at.Now.Earliest
	if r.FixedAt.After(now) { // The time has become less certain since.
		now = r.FixedAt
	}
	kept := r.OrdersAt(now)
	held := w.extends(r) && r.WindowStart.After(w.s.Bid.Slot.Start)
	for _, o := range w.head.OrdersAt(now) {
		if !slices.ContainsFunc(kept, func(k store.Order) bool { // but for what it counts
			k.Attempts, k.Spared, k.Again = o.Attempts, o.Spared, o.Again
			return k == o
		}) {
			return fmt.Errorf("append: %v doesn't repeat the order %v", r, o)
		}
		if r.Kind == store.KindGrant && w.m.Bars(o) && !held {
			return fmt.Errorf("append: %v claims, and %v", r, o)
		}
	}
	return nil
}

// give puts the order of an operator into the ledger.
func (w *world) give(o store.Order) error {
	known := w.known
	w.known = true // to the operator
	now := w.now(len(w.clocks) - 1)
	w.known = known
	o.At = now.Earliest.Truncate(time.Millisecond)
	if o.Until.IsZero() {
		o.Until = o.At
	}
	below, _ := machine.LookBelow(w.tail(64, 0), 64, now)
	if o.Kind == store.OrderRelease && o.Target == "" {
		head, until, err := below.Term("", now)
		if err != nil {
			return err
		}
		o.Target, o.Until = head.Claim, until
	}
	r, err := below.Order(o, store.Record{WorkerType: "mail", InstanceID: "ann", Claim: "order"}, machine.ReadAt(now), now)
	if err != nil {
		return err
	}
	return w.insert(r)
}

func TestAnOrderEndsWhenItsTimeHasSurelyCome(t *testing.T) {
	until := eve.Add(time.Hour)
	for _, c := range []struct {
		earliest time.Duration
		want     bool
	}{{time.Hour - time.Millisecond, true}, {time.Hour, false}} {
		w := newWorld(plain())
		now := timeline.Interval{Earliest: eve.Add(c.earliest), Latest: eve.Add(c.earliest + 10*time.Second)}
		w.s.View.Levers = machine.Standard.Obey([]store.Order{{Kind: store.OrderPause, At: eve, Until: until}}, "host")
		if got := machine.KeptOut(&w.m, &w.s, now); got != c.want {
			t.Errorf("paused until 1h, at %v at the earliest: %v, want %v", c.earliest, got, c.want)
		}
	}
}

// The record of an order changes no term, whatever the head is, and workers obey it.
func TestAnOrderChangesNoTerm(t *testing.T) {
	now := timeline.Interval{Earliest: eve.Add(6 * time.Minute), Latest: eve.Add(6*time.Minute + time.Millisecond)}
	grant := store.Record{
		WorkerType: "mail", Seq: 7, Kind: store.KindGrant, InstanceID: "w2", Group: "eu", Claim: "c", Priority: 3,
		SlotStart: eve.Add(5 * time.Minute), SlotEnd: eve.Add(10 * time.Minute), WindowStart: eve.Add(5 * time.Minute), WindowEnd: eve.Add(10 * time.Minute),
		Token: eve.Add(5 * time.Minute).UnixMilli(), Schedule: "every 5m", DoneUntil: eve, Attempt: 2, ReadAt: eve.Add(4 * time.Minute),
	}
	release := grant
	release.Seq, release.Kind = 8, store.KindRelease
	release.WindowStart = eve.Add(5*time.Minute + time.Millisecond)
	release.WindowEnd = release.WindowStart
	for name, records := range map[string][]store.Record{"a grant": {grant}, "a release": {release, grant}, "nothing": nil} {
		below, _ := machine.LookBelow(records, 64, now)
		r, err := below.Order(store.Order{Kind: store.OrderPause, At: now.Earliest, Until: eve.Add(time.Hour)}, store.Record{WorkerType: "mail", InstanceID: "ann", Claim: "order"}, machine.ReadAt(now), now)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var head store.Record
		if len(records) > 0 {
			head = records[0]
			if r.Claim != head.Claim || r.InstanceID != head.InstanceID || r.Group != head.Group || r.Token != head.Token || !r.WindowStart.Equal(head.WindowEnd) ||
				!r.WindowEnd.Equal(head.WindowEnd) || !r.DoneUntil.Equal(head.DoneUntil) || r.Attempt != head.Attempt || !r.SlotStart.Equal(head.SlotStart) {
				t.Errorf("%s: the order is %+v, want it to copy %+v", name, r, head)
			}
		}
		if err := ledger.At(now.Latest).Unfit(head, r); err != nil {
			t.Errorf("%s: workers can't obey the order: %v", name, err)
		}
	}
}

// Workers tell by its time which preference is the newer one, and operators know the time more or less well.
func TestAnOrderIsYoungerThanThoseBelowIt(t *testing.T) {
	w := newWorld(plain())
	w.known = true
	for i, c := range []struct {
		target string
		spread time.Duration
	}{{"w2", 0}, {"w3", time.Second}} {
		w.spread = c.spread
		if err := w.give(store.Order{Kind: store.OrderPrefer, Target: c.target, Until: w.time().Add(time.Hour)}); err != nil {
			t.Fatalf("order %d: %v", i+1, err)
		}
	}
	first, _ := w.ledger[1].Order()
	second, _ := w.ledger[2].Order()
	if !second.At.After(first.At) || second.Target != "w3" || second.Removes() || len(w.ledger[2].OrdersAt(w.time())) != 1 {
		t.Errorf("the second order is %+v, after %+v: want it to be younger", second, first)
	}
	if err := w.give(store.Order{Kind: store.OrderPrefer}); err != nil {
		t.Fatal(err)
	}
	if end, _ := w.ledger[3].Order(); !end.At.After(second.At) || !end.Removes() || w.ledger[3].Orders != "" {
		t.Errorf("the end of the order is %+v, and leaves %q: want none, and a younger one", end, w.ledger[3].Orders)
	}
}
