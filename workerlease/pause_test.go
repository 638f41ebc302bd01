package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// pause pauses "job" up to a time since the bubble began.
func pause(t *testing.T, l store.Ledger, until time.Duration, now bool) store.Record {
	t.Helper()
	r, err := operate.On(l).Give(t.Context(), operate.Order{
		Kind: store.OrderPause, WorkerType: "job", Until: t0.Add(until), Now: now, InstanceID: "ann", Reason: "upgrade",
	})
	must(t, err)
	return r
}

func missed(w *worker) (out []string) {
	for _, e := range observed[event.Missed](w) {
		out = append(out, fmt.Sprintf("%v %s", since(e.Slot.Start), e.Why))
	}
	return out
}

func TestNobodyClaimsInAPause(t *testing.T) {
	bubble(t, "the slot that has begun goes on, the next one is missed, and of the one in which it ends the rest is claimed", func(t *testing.T) {
		l, a, b := pair(t, nil)
		at(6 * time.Minute)
		r := pause(t, l.Handle(), 17*time.Minute, false)
		if r.Kind != store.KindOrder || r.Seq != 2 || r.InstanceID != "a" || !r.WindowStart.Equal(t0.Add(10*time.Minute)) || !r.WindowEnd.Equal(r.WindowStart) {
			t.Errorf("the order is %+v, want one that changes no term", r)
		}
		at(12 * time.Minute)
		if s := a.Status(); !strings.HasPrefix(s.Paused, "paused until 2000-01-01T00:17:00.000Z by ann: upgrade") || len(s.Orders) != 1 || !s.Healthy() {
			t.Errorf("Status() = %+v, want it to say that the worker type is paused", s)
		}
		at(23 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 15, 20)...)
		equal(t, "slots of b", b.starts())
		for _, w := range []*worker{a, b} {
			equal(t, "missed", missed(w), "10m0s paused")
		}
		if u := a.turn(t, 1); u.allocated < 17*time.Minute || u.allocated > 17*time.Minute+1050*time.Millisecond { // with what it doesn't know of the time
			t.Errorf("allocated at %v, want it in the turn after the pause", u.allocated)
		}
		if u := a.turn(t, 0); u.why != workerlease.WindowEnded || u.ended < 9*time.Minute {
			t.Errorf("the lease ended at %v: %s, want it to go on to its end", u.ended, u.why)
		}
		if s := a.Status(); s.Paused != "" || len(s.Orders) != 0 || newest(t, l).Orders != "" {
			t.Errorf("Status() = %+v and the head has %q, want nothing of a pause that is over", s, newest(t, l).Orders)
		}
		if n := len(records(t, l)); n != 4 {
			t.Errorf("%d records, want three grants, and one for the pause", n)
		}
	})
	bubble(t, "the rest is claimed when a pause ends in mid-slot, with FailoverWithin", func(t *testing.T) {
		l, a, b := pair(t, failsOver)
		at(6 * time.Minute)
		pause(t, l.Handle(), 12*time.Minute+30*time.Second, false)
		at(14 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10)...)
		equal(t, "slots of b", b.starts())
		if u := a.turn(t, 0); u.why != workerlease.WindowEnded || u.ended < 10*time.Minute-time.Second || u.ended > 10*time.Minute {
			t.Errorf("the first lease ended at %v: %s, want it to be extended to the end of its slot", u.ended, u.why)
		}
		if u := a.turn(t, 1); u.allocated < 12*time.Minute+30*time.Second || u.allocated > 12*time.Minute+32*time.Second {
			t.Errorf("allocated at %v, want it right after the pause", u.allocated)
		}
	})
	bubble(t, "a lease doesn't go on into the next slot", func(t *testing.T) {
		for _, stays := range []bool{false, true} {
			for _, within := range []time.Duration{0, time.Minute} {
				l, a, b := pair(t, func(o *workerlease.Options) {
					o.Continuous, o.NoFailback, o.FailoverWithin = true, stays, within
				})
				base := time.Since(t0).Truncate(time.Hour) + time.Hour
				at(base + 6*time.Minute)
				pause(t, l.Handle(), base+20*time.Minute, false)
				at(base + 24*time.Minute)
				if u := a.history(); len(u) != 2 || u[0].ended.Round(time.Second) != base+10*time.Minute || u[1].allocated < base+20*time.Minute || len(b.history()) != 0 {
					t.Errorf("NoFailback %v, FailoverWithin %v: %d leases of a, and %d of b, want two: up to 10m, and from 20m on: %+v", stays, within, len(u), len(b.history()), u)
				}
				a.stop(t)
				b.stop(t)
			}
		}
	})
	bubble(t, "before the first worker starts", func(t *testing.T) {
		l := memory.New(memory.Options{})
		pause(t, l.Handle(), 12*time.Minute, false)
		a := start(t, setup{Options: named("a", 0), ledger: l.Handle()})
		at(17 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(10, 15)...)
		equal(t, "missed", missed(a), "5m0s paused")
	})
	bubble(t, "TryClaim says so", func(t *testing.T) {
		l := memory.New(memory.Options{})
		pause(t, l.Handle(), time.Hour, false)
		_, err := workerlease.TryClaim(t.Context(), l.Handle(), named("a", 0))
		if !errors.Is(err, workerlease.ErrNotClaimed) || !strings.Contains(err.Error(), "paused") {
			t.Errorf("TryClaim() in a pause = %v, want ErrNotClaimed that says so", err)
		}
	})
}

func TestAPauseAtOnceStopsTheHolderAndReleasesTheRest(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := memory.New(memory.Options{})
		o := parted("a", 0, time.Minute)
		const tidies = 5 * time.Second
		a := start(t, setup{Options: o, ledger: l.Handle(), work: func(ctx context.Context, _ workerlease.Lease) {
			<-ctx.Done()
			time.Sleep(tidies)
		}})
		at(6 * time.Minute)
		pause(t, l.Handle(), 12*time.Minute, true)
		at(14 * time.Minute)
		u := a.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrPaused) || u.why != workerlease.Paused || u.ended > 7*time.Minute {
			t.Errorf("the lease ended at %v by %v: %s, want it within FailoverWithin by ErrPaused", u.ended, u.cause, u.why)
		}
		var release store.Record
		for _, r := range records(t, l) {
			if r.Kind == store.KindRelease && release.Seq == 0 {
				release = r
			}
		}
		if got := since(release.WindowEnd); got < u.ended+tidies || got > u.ended+tidies+100*time.Millisecond || release.Orders == "" {
			t.Errorf("released as of %v, want it once the code has returned at %v, with the order repeated: %+v", got, u.ended+tidies, release)
		}
		if u := a.turn(t, 1); u.allocated < 12*time.Minute {
			t.Errorf("allocated again at %v, want nothing before the pause has ended", u.allocated)
		}
	})
}

func TestADrainedHostClaimsNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l, a, _ := pair(t, nil)
		at(6 * time.Minute)
		give(t, l.Handle(), operate.Order{Kind: store.OrderDrain, WorkerType: "job", Target: "elsewhere", For: time.Hour})
		at(11 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10)...)
		give(t, l.Handle(), operate.Order{Kind: store.OrderDrain, WorkerType: "job", For: 6 * time.Minute})
		at(21 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10, 15, 20)...)
		if u := a.turn(t, 2); u.allocated < 17*time.Minute {
			t.Errorf("allocated at %v, want it after the drain", u.allocated)
		}
	})
}

// Two workers have slots of a day, and an order for eight hours keeps them from one. It ends, or a shorter one takes
// its place: they hear of that by a hint at once, and else within FailoverWithin or a minute. Nobody looks any more then.
func TestTheEndOfAnOrderIsHeardWithinTheSlot(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name string
		kind store.OrderKind
		left time.Duration // of the order that takes the place of the first one; 0: none does
	}{
		{"resume", store.OrderPause, 0},
		{"a shorter pause", store.OrderPause, 10 * time.Second},
		{"the end of a drain", store.OrderDrain, 0},
		{"a shorter drain", store.OrderDrain, 10 * time.Second},
	} {
		for _, failover := range []time.Duration{0, 20 * time.Second, time.Hour} {
			for _, hints := range []bool{false, true} {
				bubble(t, fmt.Sprintf("%s, FailoverWithin %v, hints %v", c.name, failover, hints), func(t *testing.T) {
					inner := memory.New(memory.Options{})
					counter := faultstore.NewCounter(inner.Handle())
					var workers []*worker
					for n, name := range []string{"a", "b"} {
						o := slotted(name, n, day, failover)
						var l store.Ledger = counter
						if !hints {
							l = struct{ store.Ledger }{l}
						}
						workers = append(workers, start(t, setup{Options: o, ledger: l}))
					}
					began := func() (n int) {
						for _, w := range workers {
							n += len(w.history())
						}
						return n
					}
					// A holder without FailoverWithin hears nothing within its slot: so it is kept from the next one.
					at(day - time.Hour)
					heard := min(max(failover, time.Millisecond), time.Minute)
					if failover == 0 {
						heard = time.Minute
					} else {
						at(day + time.Minute)
					}
					give(t, inner.Handle(), operate.Order{Kind: c.kind, WorkerType: "job", For: 8 * time.Hour, Now: failover > 0})
					resumed := day + 90*time.Minute + 17*time.Second
					at(resumed)
					before := began()
					if c.left > 0 {
						give(t, inner.Handle(), operate.Order{Kind: c.kind, WorkerType: "job", For: c.left})
					} else {
						_, err := operate.On(inner.Handle()).End(t.Context(), operate.Order{Kind: c.kind, WorkerType: "job"})
						must(t, err)
					}
					at(resumed + c.left - time.Millisecond)
					if n := began() - before; c.left > 0 && n != 0 {
						t.Errorf("%d leases before the shorter order is over", n)
					}
					if hints && failover > 0 {
						heard = 0
					}
					took := 200 * time.Millisecond
					if c.left > 0 {
						took += min(failover/2, 5*time.Minute) / 10 // a's turn after that
					}
					at(resumed + max(heard, c.left) + took)
					if n := began() - before; n != 1 {
						t.Errorf("%d leases within %v of the end of the order, want 1", n, max(heard, c.left))
					}
					at(resumed + 10*time.Minute)
					counter.Reset()
					at(resumed + 2*time.Hour)
					if n := counter.Counts()[faultstore.OpTail]; failover == 0 && n > 0 {
						t.Errorf("%d looks when nothing keeps the workers back any more", n)
					}
				})
			}
		}
	}
}
