package workerlease_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// machineClock plays the real clock of a machine in a bubble: the store and the workers read its boot
// time.
type machineClock struct{ *clocks.Suspendable }

func newMachine() machineClock { return machineClock{clocks.NewSuspendable(clock.New())} }

func (c machineClock) Boottime() time.Duration { return time.Hour + c.Suspendable.Boottime() }

func (machineClock) Reads(boottime.Machine) {}

// onMachine is a handle of a ledger in a file, whose time is the machine's clock.
func onMachine(t *testing.T, path string, c clock.Clock) store.Ledger {
	t.Helper()
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Clock: c, BootID: "machine"})
	must(t, err)
	t.Cleanup(func() {
		must(t, l.Close(context.Background()))
	})
	must(t, l.Init(t.Context()))
	return l
}

// slower makes each call take a while before it reaches the store and after.
func slower(t *testing.T, l store.Ledger, way time.Duration) store.Ledger {
	return struck(t, l, eachCall(faultstore.Fault{Before: way, After: way}))
}

// gaps are the times at which nobody works, between a lease and the next one.
func gaps(workers ...*worker) (out []time.Duration) {
	all := turnsOf(workers...)
	for i := range all {
		for j := range all {
			if all[j].lease.Start.Equal(all[i].lease.Expiry) {
				out = append(out, all[j].allocated-all[i].ended)
			}
		}
	}
	return out
}

// In slots of a minute the lead is 10 s. A store whose clock may drift adds 1000 ppm of that at each side
// of a boundary, and half a round trip. On one machine with SQLite only the margin is left, and the
// millisecond that a timer may be late.
func TestOnOneMachineTheGapAtABoundaryIsTheMarginHoweverLongTheLeadIs(t *testing.T) {
	for name, c := range map[string]struct {
		slot, lead time.Duration
		margin     time.Duration // 0: the default, which is 250 ms
		own        bool          // the client has a clock of its own
		least      time.Duration // besides the margin
		most       time.Duration
	}{
		"slots of a minute":                  {slot: time.Minute, most: 2 * time.Millisecond},
		"the least margin":                   {slot: time.Minute, margin: 10 * time.Millisecond, most: 2 * time.Millisecond},
		"slots of an hour, a lead of 5 min":  {slot: time.Hour, lead: 5 * time.Minute, most: 2 * time.Millisecond},
		"a clock that may be another one":    {slot: time.Minute, own: true, least: 18 * time.Millisecond, most: 25 * time.Millisecond},
		"the same, with the least margin":    {slot: time.Minute, margin: 10 * time.Millisecond, own: true, least: 18 * time.Millisecond, most: 25 * time.Millisecond},
		"the same, with a lead of 5 minutes": {slot: time.Hour, lead: 5 * time.Minute, own: true, least: 560 * time.Millisecond, most: 600 * time.Millisecond},
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		bubble(t, name, func(t *testing.T) {
			machine := newMachine()
			local := clock.Clock(machine)
			if c.own {
				local = clocks.Skewed(machine, time.Hour)
			}
			var both []*worker
			for i, name := range []string{"a", "b"} {
				l := slower(t, onMachine(t, path, machine), time.Duration(i)*time.Millisecond)
				o := named(name, 0)
				o.LeaseInterval, o.Lead, o.Margin, o.TieBreak = c.slot, c.lead, c.margin, priority.Rotate
				both = append(both, start(t, setup{ledger: l, clock: local, Options: o}))
			}
			at(20*c.slot + c.slot/2)
			apart(t, both...)
			margin := c.margin
			if margin == 0 {
				margin = 250 * time.Millisecond
			}
			all := gaps(both...)
			if len(all) < 18 {
				t.Fatalf("%d gaps in 20 slots, want 18 at least", len(all))
			}
			t.Logf("%d gaps of %v to %v", len(all), slices.Min(all), slices.Max(all))
			for _, gap := range all {
				if gap < margin+c.least || gap > margin+c.most {
					t.Errorf("a gap of %v, want the margin of %v and %v to %v", gap, margin, c.least, c.most)
				}
			}
		})
	}
}

func TestOnOneMachineALeaseIsOverWithinASecondOfWakingFromASuspend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		machine := newMachine()
		w := start(t, setup{ledger: onMachine(t, path, machine), clock: machine})
		at(6 * time.Minute)
		if u := w.turn(t, 0); !u.lease.Valid() {
			t.Fatal("the lease isn't valid before the suspend")
		}
		machine.Suspend(10 * time.Minute)
		if u := w.turn(t, 0); u.lease.Valid() || u.lease.Remaining() != 0 {
			t.Error("the lease is valid right after waking")
		}
		at(6*time.Minute + time.Second)
		if u := w.turn(t, 0); u.cause != workerlease.ErrLeaseExpired || u.expiries != 1 {
			t.Errorf("within 1 s: cause %v, %d expiries, want %v, 1", u.cause, u.expiries, workerlease.ErrLeaseExpired)
		}
		if e := observed[event.ClockJump](w); len(e) != 0 {
			t.Errorf("ClockJump events = %+v, want none", e)
		}
	})
}

// A holder's timer is set for a clock that doesn't drift. When a stamp comes that doesn't promise that, the
// lease has to end as much sooner as the clock may drift from then on.
func TestAHolderAllowsForDriftFromTheFirstStampOnThatDoesNotExcludeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		const slot = 20 * time.Minute
		machine, kept := newMachine(), true
		l := &hooked{Ledger: onMachine(t, path, machine), stamp: func(s *store.Stamp, _ time.Time) {
			if !kept {
				s.Boottime = 0
			}
		}}
		w := start(t, setup{ledger: l, clock: machine, Options: workerlease.Options{LeaseInterval: slot}})
		at(slot + time.Minute)
		kept = false
		at(2*slot + time.Second)
		endsAt(t, w.turn(t, 0).ended, 2*slot)
		near(t, "the next lease was allocated", w.turn(t, 1).allocated, begin(2*slot))
		at(4*slot + time.Second)
		endsAt(t, w.turn(t, 2).ended, 4*slot)
	})
}

// ofItsOwn is a clock that may go otherwise than the machine's, for all that a client knows.
type ofItsOwn struct{ clock.Clock }

func (c ofItsOwn) Boottime() time.Duration {
	return c.Clock.(interface{ Boottime() time.Duration }).Boottime()
}

func TestTheSystemClockIsThatOfSQLiteOnTheSameMachine(t *testing.T) {
	suites.RealTime(t)
	system := workerlease.NewSystemClock()
	if _, ok := boottime.Of(system); !ok {
		t.Skip("no boot time on this system")
	}
	for name, c := range map[string]struct {
		clock clock.Clock
		same  bool
	}{"the default": {nil, true}, "the system clock": {system, true}, "a clock around it": {ofItsOwn{system}, false}} {
		t.Run(name, func(t *testing.T) {
			l, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
			must(t, err)
			sampled := make(chan struct{}, 100)
			client := workerlease.NewClient(slower(t, l, 5*time.Millisecond), workerlease.ClientOptions{Clock: c.clock, Observer: event.ObserverFunc(func(e event.Event) {
				if _, ok := e.(event.ClockSample); ok {
					sampled <- struct{}{}
				}
			})})
			w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: time.Hour}, workerlease.Callbacks{
				LeaseAllocated: func(context.Context, workerlease.Lease) {},
			})
			must(t, err)
			<-sampled
			u := w.Status().Uncertainty
			if c.same && u > time.Microsecond || !c.same && u < 5*time.Millisecond {
				t.Errorf("Uncertainty = %v, want half a microsecond: %v, else half of the round trip of 10ms", u, c.same)
			}
			must(t, w.StopLeasing(t.Context()))
			must(t, l.Close(t.Context()))
		})
	}
}
