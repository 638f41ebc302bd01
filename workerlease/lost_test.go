package workerlease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// bare hides what a ledger can do besides.
type bare struct{ store.Ledger }

// The store is flushed while a lease is extended: its holder stops with its window, and a standby that has read of it
// waits; a worker that has just started knows nothing.
func TestAHolderStopsWithItsWindowWhenItsStoreHasLostIt(t *testing.T) {
	for name, open := range map[string]func(*memory.Ledger) store.Ledger{
		"that compares the record below": func(m *memory.Ledger) store.Ledger { return m.Handle() },
		"that compares nothing":          func(m *memory.Ledger) store.Ledger { return bare{m.Handle()} },
	} {
		bubble(t, name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			first := start(t, setup{ledger: open(m), Options: parted("first", 0, 20*time.Second)})
			second := start(t, setup{ledger: open(m), Options: parted("second", 1, 20*time.Second)})
			at(6 * time.Minute)
			window := first.Status().Lease.Expiry
			m.Lose("job", 1000)
			at(since(window) + time.Second)
			u := first.turn(t, 0)
			if u.ended == 0 || u.ended > since(window) || len(u.extended) > 0 && u.extended[len(u.extended)-1].at > 6*time.Minute {
				t.Errorf("the lease ended at %v, extended %v, want the end of its window, %v, and no extension after the loss", u.ended, u.extended, since(window))
			}
			if s := first.Status(); !strings.Contains(s.Blocked, "the store went back: record") || s.Healthy() {
				t.Errorf("Status() = %v, want that it is blocked", s)
			}
			at(10 * time.Minute)
			apart(t, first, second)
			for _, w := range []*worker{first, second} {
				e := observed[event.WentBack](w)
				if len(e) != 1 || e[0].Seq == 0 || !errors.Is(e[0].Err, store.ErrWentBack) || !w.reported(store.ErrWentBack) {
					t.Fatalf("WentBack events = %+v, want one, and an error reported", e)
				}
				if least, most := since(window)+15*time.Second, since(window)+time.Minute; since(e[0].Until) < least || since(e[0].Until) > most {
					t.Errorf("nothing is claimed before %v, want it between %v and %v", since(e[0].Until), least, most)
				}
			}
			if n := len(first.history()) + len(second.history()); n != 2 {
				t.Errorf("%d leases, want that the rest of the slot is claimed", n)
			}
			if s := first.Status(); s.Blocked != "" {
				t.Errorf("Blocked = %q, want that it is over", s.Blocked)
			}
			ofSlot := slices.DeleteFunc(append(observed[event.Lost](first), observed[event.Lost](second)...), func(e event.Lost) bool { return since(e.Slot.Start) != 5*time.Minute })
			// Either may be the first to claim after the loss: each waits for what it knows.
			slices.SortFunc(ofSlot, func(a, b event.Lost) int { return a.Holder.WindowStart.Compare(b.Holder.WindowStart) })
			if len(ofSlot) != 2 || since(ofSlot[0].Holder.WindowStart) >= since(window) || since(ofSlot[1].Holder.WindowStart) < since(window) {
				t.Errorf("Lost events = %+v, want one before the loss, and one of who has waited, and stands by now", ofSlot)
			}
			if e := append(observed[event.StoreRecovered](first), observed[event.StoreRecovered](second)...); len(e) > 0 {
				t.Errorf("StoreRecovered events = %+v, want none: the store answered all the time", e)
			}
			at(12 * time.Minute)
			records, stamp, err := m.Tail(t.Context(), "job", 100)
			must(t, err)
			lost := map[store.Lost]bool{} // The standby may have read an earlier record of the lease alone.
			v := verify.New(verify.Options{WorkerType: "job", Now: stamp.Time})
			for _, r := range slices.Backward(records) {
				v.Add(r)
				if l, is := r.Lost(); is {
					if lost[l] || l.InstanceID != "first" {
						t.Errorf("record %d says that %+v is lost, want each of the holder's once", r.Seq, l)
					}
					lost[l] = true
				}
			}
			if r := v.Report(); len(lost) == 0 || r.Faults > 0 || r.Warnings != len(lost) || r.Findings[0].Code != verify.RecordsLost {
				t.Errorf("verify finds %+v, want what is lost, and that nobody had a lease beside it", r.Findings)
			}
		})
	}
}

func TestAWorkerClaimsNothingWhileARecordIsGoneThatItHasRead(t *testing.T) {
	for name, c := range map[string]struct {
		lose int
		put  *store.Record
		want []time.Duration // slots of the two
	}{
		"all is lost":                {1000, nil, minutes(5, 20)},
		"the newest":                 {1, nil, minutes(5, 20)},
		"an operator knows of it":    {1, overridden(12*time.Minute, 3), minutes(5, 15, 20)},
		"an operator knew of others": {1, overridden(9*time.Minute, 3), minutes(5, 20)},
	} {
		bubble(t, name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			m.Put(planted(1, 0, time.Minute))
			a := start(t, setup{ledger: m.Handle(), Options: named("a", 0)})
			b := start(t, setup{ledger: m.Handle(), Options: named("b", 1)})
			at(9*time.Minute + 58*time.Second) // Both have read that a has the next slot, too.
			m.Lose("job", c.lose)
			at(11 * time.Minute)
			if c.put != nil {
				m.Put(*c.put)
			}
			at(21 * time.Minute)
			var got []time.Duration
			for _, x := range append(a.starts(), b.starts()...) {
				if x != 10*time.Minute { // It was won, and a doesn't know yet.
					got = append(got, x)
				}
			}
			equal(t, "slots", got, c.want...)
			apart(t, a, b)
		})
	}
}

// overridden is a record by which an operator ends what is in force.
func overridden(when time.Duration, seq int64) *store.Record {
	r := planted(seq, when, when)
	r.Kind, r.Claim, r.InstanceID, r.Token = store.KindOverride, "operator", "operator", r.WindowStart.UnixMilli()
	return &r
}

// renamed is a ledger whose history has another name from a time on.
func renamed(m *memory.Ledger, from time.Duration) store.Ledger {
	return &hooked{Ledger: m.Handle(), stamp: func(s *store.Stamp, _ time.Time) {
		if s.History = "first"; time.Since(t0) >= from {
			s.History = "second"
		}
	}}
}

// Another history costs nothing while nobody can have appended anything, and else a slot, or a part of one.
func TestAnotherHistoryCostsWhatMayHaveBeenGrantedUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		renamed  time.Duration
		failover time.Duration
		idle     time.Duration // at most
		told     int
	}{
		"in the middle of a slot": {7 * time.Minute, 0, time.Second, 1},
		"while claims are open":   {9*time.Minute + 55*time.Second, 0, 10*time.Minute + 30*time.Second, 1},
		"within parts":            {7 * time.Minute, time.Minute, time.Second, 1},
		"the same name":           {time.Hour, 0, time.Second, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			open := func() store.Ledger { return renamed(m, c.renamed) }
			// The holder dies with its store, so that others have to go on.
			a := start(t, setup{ledger: open(), Options: parted("a", 0, c.failover)})
			b := start(t, setup{ledger: open(), Options: parted("b", 1, c.failover)})
			at(35 * time.Minute)
			apart(t, a, b)
			end, idle := 5*time.Minute, time.Duration(0)
			for _, u := range append(a.history(), b.history()...) {
				if u.allocated > end {
					idle = max(idle, u.allocated-end)
				}
				if end = u.ended; end == 0 {
					break
				}
			}
			if idle > c.idle {
				t.Errorf("nobody had a lease for %v, want %v at most", idle, c.idle)
			}
			for _, w := range []*worker{a, b} {
				if e := observed[event.WentBack](w); len(e) != c.told || c.told > 0 && (e[0].Seq != 0 || !strings.Contains(e[0].Err.Error(), `"second" after "first"`)) {
					t.Errorf("WentBack events = %+v, want %d that name both", e, c.told)
				}
			}
		})
	}
}

// blind can't look into one record, as PostgreSQL can't look into a document that another program wrote with a NUL in it.
type blind struct {
	store.Ledger
	store.Follower

	claim string
}

func (b blind) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if prev.Claim == b.claim {
		return errors.Join(errors.ErrUnsupported, store.ErrNotStored)
	}
	return b.Follower.AppendAfter(ctx, r, prev)
}

func TestARecordThatTheStoreCannotCompareStopsNobody(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		m := memory.New(memory.Options{})
		foreign := planted(1, 0, time.Minute)
		m.Put(foreign)
		inner := m.Handle()
		w := start(t, setup{ledger: blind{inner, store.AsFollower(inner), foreign.Claim}, Options: named("a", 0)})
		at(15 * time.Minute)
		if got := len(observed[event.Allocated](w)); got == 0 {
			t.Errorf("%d leases above such a record, want the slots that follow: %s", got, w.Status())
		}
	})
}

// An operator who knows that nobody works ends the wait, whatever it is for.
func TestAnOverrideEndsTheWaitForWhatWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose    int
		renamed bool
	}{
		"a record is gone":               {1, false},
		"the history has another name":   {0, true},
		"a record, and the history, too": {1, true},
	} {
		bubble(t, name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			m.Put(planted(1, 0, time.Minute))
			lost := 9*time.Minute + 49*time.Second
			open := func() store.Ledger { return renamed(m, map[bool]time.Duration{true: lost, false: ever}[c.renamed]) }
			a := start(t, setup{ledger: open(), Options: named("a", 0)})
			b := start(t, setup{ledger: open(), Options: named("b", 1)})
			at(lost)
			m.Lose("job", c.lose)
			at(12 * time.Minute)
			if a.Status().Blocked == "" || b.Status().Blocked == "" {
				t.Fatalf("Blocked: %q, %q: nothing is tested", a.Status().Blocked, b.Status().Blocked)
			}
			override(t, m.Handle(), operate.OverrideOptions{})
			at(16 * time.Minute)
			apart(t, a, b)
			if u := a.turn(t, 1); u.allocated.Round(time.Second) != 15*time.Minute {
				t.Errorf("a began at %v, want 15m", u.allocated)
			}
			for _, w := range []*worker{a, b} {
				if s := w.Status().Blocked; s != "" {
					t.Errorf("Blocked = %q, want nothing", s)
				}
			}
		})
	}
}

// losing loses its newest records right before the first record of an operator is appended.
type losing struct {
	*memory.Ledger
	lose int
}

func (l *losing) Append(ctx context.Context, r store.Record) error {
	l.loses(r)
	return l.Ledger.Append(ctx, r)
}

func (l *losing) AppendAfter(ctx context.Context, r, prev store.Record) error {
	l.loses(r)
	return l.Ledger.AppendAfter(ctx, r, prev)
}

func (l *losing) loses(r store.Record) {
	if r.WorkerType != "" { // else it is asked what it can do
		l.Lose(r.WorkerType, l.lose)
		l.lose = 0
	}
}

// A record of an operator goes above the one that was read: above a key that is free by then, it would be poison, and nobody
// would lead until that is superseded.
func TestNothingOfAnOperatorGoesAboveWhatWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(context.Context, store.Ledger) error
		want error
	}{
		"order": {func(ctx context.Context, l store.Ledger) error {
			_, err := operate.On(l).Give(ctx, operate.Order{Kind: store.OrderPrefer, WorkerType: "job", Target: "b", For: time.Hour})
			return err
		}, nil}, // It is given to what is left.
		"override": {func(ctx context.Context, l store.Ledger) error {
			_, err := operate.On(l).Override(ctx, operate.OverrideOptions{WorkerType: "job", Seq: 5})
			return err
		}, store.ErrWentBack},
	} {
		bubble(t, name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			a := start(t, setup{ledger: m.Handle(), Options: named("a", 0)})
			b := start(t, setup{ledger: m.Handle(), Options: named("b", 1)})
			at(26 * time.Minute) // in the slot of record 5
			if err := c.do(t.Context(), &losing{m.Handle(), 2}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			at(41 * time.Minute)
			apart(t, a, b)
			for _, w := range []*worker{a, b} {
				if n := len(observed[event.Poison](w)); n > 0 {
					t.Errorf("%d records were poison", n)
				}
			}
			all := records(t, m)
			for i, r := range all {
				if r.Seq != int64(i+1) {
					t.Fatalf("record %d is of number %d", i+1, r.Seq)
				}
			}
		})
	}
}

// An answer of the server that was in charge before may come after one of the new server: the history has changed once.
func TestALateAnswerBringsNoOldHistoryBack(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		m := memory.New(memory.Options{})
		var mu sync.Mutex
		late := 0
		ledger := &hooked{Ledger: m.Handle(), stamp: func(s *store.Stamp, sent time.Time) {
			mu.Lock()
			defer mu.Unlock()
			old := since(sent) < 19*time.Minute+40*time.Second
			if !old && late == 0 {
				old, late = true, 1
				mu.Unlock()
				time.Sleep(2 * time.Second)
				mu.Lock()
			}
			if s.History = "second"; old {
				s.History = "first"
			}
		}}
		seen := &worker{}
		client := newClient(seen, setup{ledger: ledger})
		for _, workerType := range []string{"job", "other"} {
			start(t, setup{client: client, Options: workerlease.Options{WorkerType: workerType, InstanceID: "a"}})
		}
		at(26 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if events := observed[event.WentBack](seen); late != 1 || len(events) != 2 {
			t.Errorf("%d late answers, WentBack events %+v: want one of each worker", late, events)
		}
	})
}

// A worker dies, and the store loses what it had appended last: both are told, though one has to wait.
func TestAWorkerThatDiesIsToldDeadAlsoBesideALoss(t *testing.T) {
	for name, lose := range map[string]int{"nothing is lost": 0, "its extension is lost": 1} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			options := func(name string, priority int) workerlease.Options {
				o := hourly(name, priority, 0)
				o.FailoverWithin = time.Minute
				return o
			}
			start(t, setup{ledger: link, Options: options("victim", 0), task: untilTold})
			other := start(t, setup{ledger: inner, Options: options("other", 1), task: func(context.Context, workerlease.Lease) error { return nil }})
			at(time.Hour + 7*time.Minute)
			link.Break(faultstore.Down())
			at(time.Hour + 7*time.Minute + 2*time.Second)
			if lose > 0 {
				inner.Lose("job", lose)
			}
			at(time.Hour + 50*time.Minute)
			if n := len(observed[event.WentBack](other)); n != lose {
				t.Errorf("%d WentBack events, want %d", n, lose)
			}
			if told := died(t, inner); len(told) != 1 || told[0].InstanceID != "victim" {
				t.Errorf("%+v are told dead, want the victim", told)
			}
			says := slices.DeleteFunc(records(t, inner), func(r store.Record) bool { _, lost := r.Lost(); return !lost })
			if len(says) != lose {
				t.Errorf("records %+v say that one is lost, want %d", says, lose)
			}
			link.Mend()
		})
	}
}
