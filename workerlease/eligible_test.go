package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// health is what a worker's check says of it.
type health struct {
	bad   atomic.Bool
	asked atomic.Int64
}

var errUnwell = errors.New("queue is down")

func (h *health) check(context.Context) error {
	h.asked.Add(1)
	if h.bad.Load() {
		return errUnwell
	}
	return nil
}

// patient is a worker of a priority with a check, in slots of a minute.
func (h *health) options(id string, p int) workerlease.Options {
	o := named(id, p)
	o.LeaseInterval, o.Eligible, o.EligibleEvery = time.Minute, h.check, 2*time.Second
	return o
}

func TestAWorkerThatIsNotEligibleClaimsNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var sick, well health
		sick.bad.Store(true)
		a := start(t, setup{ledger: ledger, Options: sick.options("a", 0)})
		b := start(t, setup{ledger: ledger, Options: well.options("b", 1)})
		at(3*time.Minute + 30*time.Second)
		if n, m := len(a.history()), len(b.history()); n != 0 || m != 3 {
			t.Errorf("the one that isn't eligible had %d leases, the other %d; want 0 and 3", n, m)
		}
		for _, r := range records(t, ledger) {
			if r.InstanceID != "b" {
				t.Errorf("%s appended %v, want nothing of a worker that isn't eligible", r.InstanceID, r)
			}
		}
		if holder, ok := a.Holder(); !ok || holder.InstanceID != "b" {
			t.Errorf("Holder() = %+v, %v of one that isn't eligible, want b", holder, ok)
		}
		s := a.Status()
		if s.Ineligible != errUnwell.Error() || !s.Healthy() || s.Lost != 3 || s.Missed != 0 {
			t.Errorf("status %+v, want it not eligible and healthy, with 3 slots lost to the other", s)
		}
		if told := observed[event.BecameIneligible](a); len(told) != 1 || !errors.Is(told[0].Err, errUnwell) {
			t.Errorf("events %+v, want one, with the check's error", told)
		}

		sick.bad.Store(false)
		at(4*time.Minute + 30*time.Second)
		if n := len(a.history()); n != 1 || a.Status().Ineligible != "" {
			t.Errorf("%d leases once it is eligible, status %v; want 1", n, a.Status())
		}
	})
}

// Where nobody is, each slot is missed, and the one that becomes eligible in the middle of a slot has the
// rest of it. If that is right before a boundary, it is there on time.
func TestSlotsThatNobodyIsEligibleForAreMissed(t *testing.T) {
	for _, c := range []struct {
		well, allocated time.Duration
		missed          int // by then: a slot is given up when claims for the next one open
	}{
		{165 * time.Second, 168 * time.Second, 1},
		{173 * time.Second, 182 * time.Second, 2},
		{210 * time.Second, 213 * time.Second, 2},
	} {
		bubble(t, c.well.String(), func(t *testing.T) {
			var h health
			h.bad.Store(true)
			a := start(t, setup{Options: h.options("a", 0)})
			at(c.well)
			if n := a.Status().Missed; n != c.missed {
				t.Errorf("%d slots missed by %v, want %d", n, c.well, c.missed)
			}
			for _, e := range observed[event.Missed](a) {
				if e.Why != workerlease.Ineligible {
					t.Errorf("missed because of %q, want %q", e.Why, workerlease.Ineligible)
				}
			}
			h.bad.Store(false)
			at(239 * time.Second)
			if u := a.turn(t, 0); u.allocated > c.allocated {
				t.Errorf("allocated at %v, want it by %v", u.allocated, c.allocated)
			}
		})
	}
}

// Idle workers with long slots aren't asked all the time.
func TestTheCheckIsAskedBeforeEachClaimAndWhileALeaseIsHeld(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var first, second health
		o := first.options("a", 0)
		o.LeaseInterval, o.EligibleEvery = time.Hour, 10*time.Second
		p := second.options("b", 1)
		p.LeaseInterval, p.EligibleEvery = time.Hour, 10*time.Second
		start(t, setup{ledger: ledger, Options: o})
		start(t, setup{ledger: ledger, Options: p})
		at(59*time.Minute + 45*time.Second)
		if n, m := first.asked.Load(), second.asked.Load(); n != 0 || m != 0 {
			t.Errorf("asked %d and %d times before claims open, want not at all", n, m)
		}
		at(time.Hour)
		held := first.asked.Load()
		if n, m := held, second.asked.Load(); n < 1 || n > 3 || m < 1 || m > 2 {
			t.Errorf("asked %d and %d times for one claim, want one or two", n, m)
		}
		at(time.Hour + 10*time.Minute)
		if n := first.asked.Load() - held; n < 59 || n > 61 {
			t.Errorf("asked %d times in ten minutes of a lease, want 60", n)
		}
		if m := second.asked.Load(); m > 2 {
			t.Errorf("the worker that lost was asked %d times, want no more than for its claim", m)
		}
	})
}

func TestAHolderThatIsNotEligibleAnyMoreIsFollowed(t *testing.T) {
	for _, within := range []time.Duration{0, 8 * time.Second} {
		for _, continuous := range []bool{false, true} {
			if within == 0 && !continuous {
				continue // The next boundary is the next chance.
			}
			bubble(t, fmt.Sprint(within, " ", continuous), func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				var first, second health
				o, p := first.options("a", 0), second.options("b", 1)
				o.FailoverWithin, o.Continuous = within, continuous
				p.FailoverWithin, p.Continuous = within, continuous
				code := 500 * time.Millisecond
				a := start(t, setup{ledger: ledger, Options: o, work: func(ctx context.Context, _ workerlease.Lease) {
					<-ctx.Done()
					time.Sleep(code)
				}})
				b := start(t, setup{ledger: ledger, Options: p})
				bad := 75 * time.Second
				at(bad)
				first.bad.Store(true)
				at(3 * time.Minute)
				u := a.turn(t, 0)
				if u.why != workerlease.Ineligible || !errors.Is(u.cause, workerlease.ErrIneligible) || u.ended > bad+o.EligibleEvery {
					t.Errorf("the lease ended at %v: %s, %v; want it within %v of %v", u.ended, u.why, u.cause, o.EligibleEvery, bad)
				}
				v := b.turn(t, 0)
				if v.allocated < u.returned {
					t.Errorf("the next began at %v, before the code had returned at %v", v.allocated, u.returned)
				}
				if most := u.returned + time.Second; within > 0 && v.allocated > most {
					t.Errorf("the next began at %v, want it by %v", v.allocated, most)
				}
				if v.allocated > 121*time.Second {
					t.Errorf("the next began at %v, want it at the boundary at the latest", v.allocated)
				}

				// It is fit again: it leads again from one of the next boundaries on, or with Continuous. Within a turn, when it claims
				// is chance, so that once in some hundred times the other one comes first.
				first.bad.Store(false)
				at(8 * time.Minute)
				if n := len(a.history()); n < 2 {
					t.Errorf("%d leases after it was eligible again, want another", n)
				}
			})
		}
	}
}

func TestAHolderMayKeepItsLease(t *testing.T) {
	for name, set := range map[string]workerlease.Options{
		"to the end of its slot":      {},
		"from slot to slot":           {Continuous: true},
		"from slot to slot, in parts": {Continuous: true, FailoverWithin: 8 * time.Second},
		"without failback":            {Continuous: true, NoFailback: true},
		"without failback, in parts":  {Continuous: true, NoFailback: true, FailoverWithin: 8 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			var h health
			o := h.options("a", 0)
			o.KeepIneligible, o.Continuous, o.NoFailback, o.FailoverWithin = true, set.Continuous, set.NoFailback, set.FailoverWithin
			a := start(t, setup{Options: o})
			at(75 * time.Second)
			h.bad.Store(true)
			at(5 * time.Minute)
			if u := a.history(); len(u) != 1 || (u[0].ended == 0) != set.Continuous || !set.Continuous && u[0].why != workerlease.WindowEnded {
				t.Errorf("leases %+v, want one, that ended with its slot or lasts", u)
			}
		})
	}
}

// It won the next slot, and is not fit any more before that begins.
func TestASlotThatWasWonIsGivenBackByAWorkerThatIsNotEligible(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var first, second health
		a := start(t, setup{ledger: ledger, Options: first.options("a", 0)})
		at(57 * time.Second)
		first.bad.Store(true)
		p := second.options("b", 1)
		at(61 * time.Second)
		b := start(t, setup{ledger: ledger, joins: true, Options: p})
		at(90 * time.Second)
		if n := len(a.history()); n != 0 {
			t.Errorf("%d leases of a worker that isn't eligible, want none", n)
		}
		// b starts at 1m1s and claims at random within two seconds; a sample of the clock may add milliseconds.
		if v := b.turn(t, 0); v.allocated > 63*time.Second+100*time.Millisecond {
			t.Errorf("the rest of the slot began at %v, want it at once", v.allocated)
		}
	})
}

// What the check does wrong counts as an error, and costs no other call.
func TestAnyCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		check func(ctx context.Context) error
		want  string
	}{
		{"panics", func(context.Context) error { panic("no") }, "Eligible: lease callback panicked: no"},
		{"waits for its context", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "the check took longer than 1s"},
		{"hangs", func(context.Context) error { time.Sleep(time.Hour); return nil }, "the check took longer than 1s"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			o := named("a", 0)
			o.LeaseInterval, o.Eligible = time.Minute, tc.check
			a := start(t, setup{Options: o})
			at(50 * time.Minute)
			if n := len(a.history()); n != 0 {
				t.Errorf("%d leases, want none", n)
			}
			var why string
			for _, e := range observed[event.BecameIneligible](a) {
				why += e.Err.Error()
			}
			if len(why) < len(tc.want) || why[:len(tc.want)] != tc.want {
				t.Errorf("not eligible because %q, want %q", why, tc.want)
			}
		})
	}
}

func TestTryClaimOfAWorkerThatIsNotEligible(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var h health
		h.bad.Store(true)
		began := time.Now()
		_, err := workerlease.TryClaim(t.Context(), memory.New(memory.Options{}), h.options("a", 0))
		if !errors.Is(err, workerlease.ErrNotClaimed) || !errors.Is(err, workerlease.ErrIneligible) || !errors.Is(err, errUnwell) {
			t.Errorf("TryClaim() = %v, want ErrNotClaimed, ErrIneligible and the check's error", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("TryClaim() took %v, want it to fail at once", took)
		}
	})
}

// A group goes on without the member, which is back in the next slot.
func TestAMemberOfAGroupThatIsNotEligibleStopsAlone(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var first, second health
		o, p := first.options("a", 0), second.options("b", 1)
		o.Group, p.Group = "g", "g"
		a := start(t, setup{ledger: ledger, Options: o})
		b := start(t, setup{ledger: ledger, Options: p})
		at(75 * time.Second)
		first.bad.Store(true)
		at(90 * time.Second)
		first.bad.Store(false)
		at(150 * time.Second)
		if u := a.history(); len(u) != 2 || u[0].why != workerlease.Ineligible {
			t.Errorf("%d leases of the one, want one that ended because it isn't eligible, and that of the next slot", len(u))
		}
		if v := b.history(); len(v) != 2 || v[0].why != workerlease.WindowEnded {
			t.Errorf("%d leases of the other, want two", len(v))
		}
	})
}

func TestALeaseWithoutProgressEnds(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o, p := named("a", 0), named("b", 1)
		o.LeaseInterval, o.FailoverWithin, o.ProgressWithin = time.Hour, 20*time.Second, time.Minute
		p.LeaseInterval, p.FailoverWithin = time.Hour, 20*time.Second
		a := start(t, setup{ledger: ledger, Options: o, work: func(ctx context.Context, l workerlease.Lease) {
			for range 20 {
				select {
				case <-ctx.Done():
					return
				case <-time.After(50 * time.Second):
					l.Progress()
				}
			}
			<-ctx.Done()
		}})
		b := start(t, setup{ledger: ledger, Options: p})
		at(2*time.Hour - 30*time.Second)
		u, v := a.turn(t, 0), b.turn(t, 0)
		want := time.Hour + 1000*time.Second + time.Minute
		if u.why != workerlease.Stalled || !errors.Is(u.cause, workerlease.ErrStalled) || u.ended < want || u.ended > want+time.Second {
			t.Errorf("the lease ended at %v: %s, %v; want %v", u.ended, u.why, u.cause, want)
		}
		if v.allocated > u.ended+time.Second {
			t.Errorf("the next began at %v, want it after %v", v.allocated, u.ended)
		}
	})
}
