package workerlease_test

import (
	"errors"
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
	"github.com/slotlease/slotlease/workerlease/operate"
)

// prefer lets a worker of "job" go first for an hour.
func prefer(t *testing.T, l store.Ledger, target string, now bool) {
	t.Helper()
	give(t, l, operate.Order{Kind: store.OrderPrefer, WorkerType: "job", Target: target, For: time.Hour, Now: now})
}

// pair starts two workers, a with priority 0 and b with 1.
func pair(t *testing.T, change func(*workerlease.Options)) (l *memory.Ledger, a, b *worker) {
	t.Helper()
	l = memory.New(memory.Options{})
	one := func(name string, priority int) *worker {
		o := named(name, priority)
		if change != nil {
			change(&o)
		}
		return start(t, setup{Options: o, ledger: l.Handle()})
	}
	return l, one("a", 0), one("b", 1)
}

func failsOver(o *workerlease.Options) { o.FailoverWithin = time.Minute }

func TestThePreferredWorkerHasTheSlots(t *testing.T) {
	for name, change := range map[string]func(*workerlease.Options){
		"slots":      nil,
		"failover":   failsOver,
		"continuous": func(o *workerlease.Options) { o.Continuous = true },
		"no failback": func(o *workerlease.Options) {
			o.Continuous, o.NoFailback = true, true
		},
	} {
		bubble(t, name+", from the next boundary on", func(t *testing.T) {
			l, a, b := pair(t, change)
			at(6 * time.Minute)
			prefer(t, l.Handle(), "b", false)
			at(19 * time.Minute)
			apart(t, a, b)
			if u := a.history(); len(u) != 1 || u[0].ended.Round(time.Second) != 10*time.Minute {
				t.Errorf("a had %d leases, want one up to 10m: %+v", len(u), u)
			}
			if u := b.turn(t, 0); u.allocated.Round(100*time.Millisecond) != 10*time.Minute {
				t.Errorf("b began at %v, want 10m", u.allocated)
			}
			if n := len(missed(a)) + len(missed(b)); n > 0 {
				t.Errorf("%d slots were missed", n)
			}
		})
		bubble(t, name+", and nothing is lost if it is dead", func(t *testing.T) {
			l, a, b := pair(t, change)
			at(6 * time.Minute)
			prefer(t, l.Handle(), "c", false)
			at(19 * time.Minute)
			apart(t, a, b)
			if got := len(missed(a)) + len(missed(b)); got > 0 || len(holders(t, l)) < 3 {
				t.Errorf("missed: %v %v, holders: %v", missed(a), missed(b), holders(t, l))
			}
		})
	}
	bubble(t, "at once, with FailoverWithin, and nobody is stopped twice", func(t *testing.T) {
		l, a, b := pair(t, failsOver)
		at(6 * time.Minute)
		prefer(t, l.Handle(), "b", true)
		at(9 * time.Minute)
		u := a.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrAskedToRelease) || u.ended > 7*time.Minute {
			t.Errorf("a's lease ended at %v by %v, want it soon by ErrAskedToRelease", u.ended, u.cause)
		}
		if v := b.turn(t, 0); v.allocated < u.ended || v.allocated > 8*time.Minute {
			t.Errorf("b began at %v, want it soon after %v", v.allocated, u.ended)
		}
		at(19 * time.Minute)
		apart(t, a, b)
		if len(a.history()) != 1 || len(b.history()) != 3 {
			t.Errorf("a had %d leases and b %d, want one and three", len(a.history()), len(b.history()))
		}
	})
	bubble(t, "a worker that starts right before a slot comes after all turns, too", func(t *testing.T) {
		l := memory.New(memory.Options{})
		at(9*time.Minute + 45*time.Second)
		prefer(t, l.Handle(), "b", false)
		at(9*time.Minute + 52*time.Second)
		o := named("a", 0)
		start(t, setup{Options: o, joins: true, ledger: l.Handle()})
		at(11 * time.Minute)
		r := newest(t, l)
		if from := 9*time.Minute + 57*time.Second; r.Kind != store.KindGrant || since(r.SlotStart) != 10*time.Minute || since(r.ReadAt) < from {
			t.Errorf("the head is %+v, want a grant of the slot from 10m, for which the head was read after the turns, at %v", r, from)
		}
	})
	bubble(t, "at once, and dead: another one takes over, once", func(t *testing.T) {
		l, a, b := pair(t, failsOver)
		at(6 * time.Minute)
		prefer(t, l.Handle(), "c", true)
		at(9 * time.Minute)
		apart(t, a, b)
		if len(a.history()) != 1 || len(b.history()) != 1 || b.turn(t, 0).ended != 0 {
			t.Errorf("a had %d leases and b %d, want one each, and b's to go on", len(a.history()), len(b.history()))
		}
	})
}

func TestAReleaseIsAskedOfOneTermOnly(t *testing.T) {
	bubble(t, "the holder steps down, and others have the rest", func(t *testing.T) {
		l, a, b := pair(t, failsOver)
		at(6 * time.Minute)
		r, err := operate.On(l.Handle()).Give(t.Context(), operate.Order{Kind: store.OrderRelease, WorkerType: "job", Reason: "stuck"})
		must(t, err)
		at(9 * time.Minute)
		apart(t, a, b)
		if u := a.turn(t, 0); !errors.Is(u.cause, workerlease.ErrAskedToRelease) || u.why != workerlease.AskedToRelease || u.ended > 7*time.Minute {
			t.Errorf("a's lease ended at %v by %v: %s", u.ended, u.cause, u.why)
		}
		if v := b.turn(t, 0); v.ended != 0 || v.allocated > 8*time.Minute {
			t.Errorf("b's lease: %+v, want it to go on: the order is not about it", v)
		}
		o, _ := r.Order()
		if o.Target != r.Claim || o.Until.Sub(o.At) > time.Hour || !o.Until.After(r.WindowEnd.Add(-time.Millisecond)) {
			t.Errorf("the order is %+v, want one of the claim in force, up to the end of its slot", o)
		}
		at(19 * time.Minute)
		// Once in some thousand slots its place is so late in its turn that b's turn comes before its claim lands.
		if n := len(a.history()); n < 2 {
			t.Errorf("a had %d leases, want one of the next two slots as well", n)
		}
	})
	bubble(t, "alone, it takes the rest again", func(t *testing.T) {
		l := memory.New(memory.Options{})
		o := parted("a", 0, time.Minute)
		a := start(t, setup{Options: o, ledger: l.Handle()})
		at(6 * time.Minute)
		give(t, l.Handle(), operate.Order{Kind: store.OrderRelease, WorkerType: "job"})
		at(9 * time.Minute)
		if u := a.history(); len(u) != 2 || u[1].ended != 0 {
			t.Errorf("%d leases, want two, the second of which goes on: %+v", len(u), u)
		}
	})
	bubble(t, "nobody holds anything", func(t *testing.T) {
		l := memory.New(memory.Options{})
		for _, claim := range []string{"", "0123"} {
			if _, err := operate.On(l.Handle()).Give(t.Context(), operate.Order{Kind: store.OrderRelease, WorkerType: "job", Target: claim}); !errors.Is(err, operate.ErrNoTerm) {
				t.Errorf("AskRelease(%q) = %v, want ErrNoTerm", claim, err)
			}
		}
		start(t, setup{Options: named("a", 0), ledger: l.Handle()})
		at(6 * time.Minute)
		if _, err := operate.On(l.Handle()).Give(t.Context(), operate.Order{Kind: store.OrderRelease, WorkerType: "job", Target: "0123"}); !errors.Is(err, operate.ErrNoTerm) {
			t.Errorf("AskRelease of another claim = %v, want ErrNoTerm", err)
		}
	})
}

func TestOrdersAreGivenToTheHeadOfTheLedger(t *testing.T) {
	order := func(l store.Ledger) error {
		_, err := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderPause, WorkerType: "job", For: time.Hour})
		return err
	}
	bubble(t, "a conflict is met by another try", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		inner.Put(planted(1, 0, time.Minute))
		taken := 0
		h := &hooked{Ledger: inner.Handle()}
		most := 3
		h.beforeAppend = func(r store.Record) {
			if taken++; taken <= most {
				x := newest(t, inner)
				x.Seq, x.Kind, x.WindowStart = r.Seq, store.KindDone, x.WindowEnd
				inner.Put(x)
			}
		}
		if err := order(h); err != nil || newest(t, inner).Seq != 5 || newest(t, inner).Kind != store.KindOrder {
			t.Errorf("Pause() = %v, the head is %+v, want an order as record 5", err, newest(t, inner))
		}
		taken, most = 0, 100
		if err := order(h); !errors.Is(err, operate.ErrHeadMoved) || taken != 8 {
			t.Errorf("Pause() = %v after %d tries, want ErrHeadMoved after 8", err, taken)
		}
	})
	bubble(t, "poison is no head for orders", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		inner.Put(store.Record{WorkerType: "job", Seq: 1, Defect: "not a record"})
		if err := order(inner.Handle()); !errors.Is(err, operate.ErrUnfitHead) {
			t.Errorf("Pause() = %v, want ErrUnfitHead", err)
		}
	})
	bubble(t, "bad options are all reported at once", func(t *testing.T) {
		_, err := operate.On(memory.New(memory.Options{})).Give(t.Context(), operate.Order{
			Kind: store.OrderPrefer, WorkerType: "a/b", For: -1, InstanceID: "a\nb", Reason: strings.Repeat("r", 257),
		})
		for _, want := range []string{"WorkerType", "For", "Target", "InstanceID", "Reason"} {
			if !errors.Is(err, workerlease.ErrOptions) || !strings.Contains(err.Error(), want) {
				t.Errorf("Prefer() = %v, want ErrOptions that names %s", err, want)
			}
		}
		for _, o := range []operate.Order{
			{WorkerType: "job", Kind: store.OrderPause},
			{WorkerType: "job", Kind: store.OrderPause, Until: t0.Add(-time.Hour)},
			{WorkerType: "job", Kind: store.OrderPause, Until: t0.AddDate(2, 0, 0)},
			{WorkerType: "job", Kind: store.OrderPause, Until: t0.Add(time.Hour), For: time.Hour},
			{WorkerType: "job", For: time.Hour},
		} {
			if _, err := operate.On(memory.New(memory.Options{})).Give(t.Context(), o); !errors.Is(err, workerlease.ErrOptions) {
				t.Errorf("Give(%+v) = %v, want ErrOptions", o, err)
			}
		}
	})
	bubble(t, "what doesn't fit beside others is refused", func(t *testing.T) {
		l := memory.New(memory.Options{})
		var err error
		for n := 0; n < 9 && err == nil; n++ {
			_, err = operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderDrain, WorkerType: "job", Target: fmt.Sprint("h", n), For: time.Hour, InstanceID: "ann"})
		}
		if !errors.Is(err, operate.ErrTooManyOrders) || len(records(t, l)) != 8 {
			t.Errorf("the ninth Drain() = %v after %d records, want ErrTooManyOrders", err, len(records(t, l)))
		}
	})
}

func TestALeverCostsOneAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		worker, operator := faultstore.NewCounter(inner.Handle()), faultstore.NewCounter(inner.Handle())
		start(t, setup{ledger: worker, Options: named("a", 0)})
		at(6 * time.Minute)
		worker.Reset()
		pause(t, operator, 31*time.Minute, false)
		if got := operator.Counts(); got[faultstore.OpAppend] != 1 || got[faultstore.OpTail] != 1 || got[faultstore.OpNow] > 2 || got[faultstore.OpGet] != 0 {
			t.Errorf("a pause costs %v, want one append, one tail, and the time", got)
		}
		at(29 * time.Minute)
		if got := worker.Counts(); got[faultstore.OpAppend] != 0 || got[faultstore.OpTail] > 20 || got[faultstore.OpNow] > 20 || got[faultstore.OpGet] != 0 {
			t.Errorf("a paused worker calls %v in the 20 min of its slots, want one look in each, and nothing else", got)
		}
	})
}

func TestWhoHoldsTheLeaseShowsBelowAnOrder(t *testing.T) {
	bubble(t, "to a worker that starts after it, too", func(t *testing.T) {
		l, a, b := pair(t, nil)
		at(6 * time.Minute)
		pause(t, l.Handle(), 17*time.Minute, false)
		c := start(t, setup{Options: named("c", 2), ledger: l.Handle()})
		at(9*time.Minute + 58*time.Second)
		for _, w := range []*worker{a, b, c} {
			if h, ok := w.Holder(); !ok || h.InstanceID != "a" || !h.Until.Equal(t0.Add(10*time.Minute)) {
				t.Errorf("%s: Holder() = %+v, %v, want a up to the end of its slot", w.Status().InstanceID, h, ok)
			}
		}
	})
}

// Shortly before a boundary the next slot has been claimed already. The holder is asked to release, and the next one keeps its slot.
func TestTheHolderIsAskedToReleaseAlsoAfterTheNextSlotWasClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Options{})
		var workers []*worker
		for _, name := range []string{"a", "b"} {
			o := parted(name, 0, 10*time.Second)
			o.LeaseInterval, o.TieBreak = time.Minute, priority.Rotate
			workers = append(workers, start(t, setup{Options: o, ledger: l.Handle()}))
		}
		at(10*time.Minute + 57*time.Second)
		holder, next := workers[0], workers[1]
		if next.IsHolder() {
			holder, next = next, holder
		}
		if !holder.IsHolder() || newest(t, l).InstanceID != next.Status().InstanceID {
			t.Fatalf("%s has claimed the next slot, want the one that doesn't hold", newest(t, l).InstanceID)
		}
		r, err := operate.On(l.Handle()).Give(t.Context(), operate.Order{Kind: store.OrderRelease, WorkerType: "job"})
		must(t, err)
		o, _ := r.Order()
		for _, x := range records(t, l) {
			if x.Claim == o.Target && x.Kind == store.KindGrant && x.InstanceID != holder.Status().InstanceID {
				t.Fatalf("%s is asked, want the holder", x.InstanceID)
			}
		}
		at(11*time.Minute + 55*time.Second)
		if !next.IsHolder() {
			t.Error("the next slot was released")
		}
	})
}
