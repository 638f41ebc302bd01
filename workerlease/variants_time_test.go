package workerlease_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// timeVariants are careless about the time.
var timeVariants = []variant{
	// w0 claims by what it heard of the time long ago. (Windows stay disjoint, since
	// what it knows grows ever more uncertain.)
	{name: "an old sample of the time is as good as a new one", rule: "Fresh", regime: cutShort, instead: 24 * time.Hour},
	// w0's machine is suspended while it works. Its clock stood still as well, and it
	// works on when w1 has begun.
	{
		name: "time is counted by a clock that a suspend stops", rule: "local clock", regime: standstills,
		around: clocked(func(c clock.Clock) clock.Clock { return sleepyClock{c} }),
	},
	// The store's answers take long to come. The middle of what w1 knows is ahead of
	// store time by more than w0's margin, and w1 begins while w0 still works.
	{name: "a lease begins by the best guess of the time", rule: "BeginBy", regime: uncertain, instead: timeline.Mid},
	// The same, the other way round: w0's guess is behind, and it works on when w1
	// has begun.
	{name: "a lease ends by the best guess of the time", rule: "EndBy", regime: uncertain, instead: timeline.Mid},
	// Store time is near the end of what w0 knows. It has another uncertainty to go
	// when w1 begins.
	{name: "a lease ends when it has surely ended", rule: "EndBy", regime: uncertain, instead: timeline.Earliest},
	// w0 works on for a margin when w1 has begun.
	{name: "the margin is a time to finish in", rule: "Last", regime: anything, instead: func(end time.Time, margin time.Duration) time.Time { return end.Add(margin) }},
	// w1 hears from a member whose clock is ahead of that by which w0 works, which
	// hasn't asked since. w1 begins by it, and w0 works on.
	{name: "another clock of the store is believed at once", rule: "Settled", regime: jumps, instead: func(machine.Moment, machine.Clock) bool { return true }},
	// The store's clock steps. w0 hasn't asked since, and extends its lease. w1 has, and begins when
	// the window has ended that it read then.
	{name: "what ends is what was read when the clock jumped", rule: "Unchanged", regime: jumpsUnderParts, instead: false},
	// w0 holds a lease, and the store contradicts what it said of the time before. w0 goes
	// on.
	{name: "a contradiction is nothing to worry about", rule: "Jumped", regime: jumps, instead: func(int, int) bool { return false }, audit: unmoved},
	// The time of day of w0's machine is set back while it works.
	{
		name: "time is counted by the time of day", rule: "local clock", regime: wallSteps,
		around: clocked(func(c clock.Clock) clock.Clock { return wallClock{c} }),
	},
}

// unmoved finds that the store's clock has jumped, and that no lease was ended for it.
func unmoved(r *sim.Result) []string {
	n := r.Struck[sim.Jump]
	if n == 0 || slices.ContainsFunc(r.Leases, func(l *sim.Lease) bool { return l.Why == workerlease.ClockJumped }) {
		return nil
	}
	return []string{fmt.Sprintf("the store's clock jumps %d times, and all leases go on", n)}
}

// sleepyClock is as Go's own: it doesn't go on while the machine is suspended.
type sleepyClock struct{ clock.Clock }

func (c sleepyClock) Boottime() time.Duration {
	return c.Clock.(interface{ Monotonic() time.Duration }).Monotonic()
}

// wallClock takes the time of day for a clock that goes on steadily.
type wallClock struct{ clock.Clock }

func (c wallClock) Boottime() time.Duration { return c.Now().Sub(time.Unix(0, 0)) }

// loopVariants don't look again at the time when they should.
var loopVariants = []variant{
	// w0 has won the rest of a slot. An observer keeps it for some seconds between that
	// and LeaseAllocated, and w1's slot has begun by then.
	{name: "it was time a moment ago", rule: "Looks: AtStart", regime: busy, instead: standard.Looks &^ machine.AtStart},
	// w0's machine is suspended for longer than its lease lasts. When it wakes, the
	// timer goes on from where it was, and the code's context doesn't end.
	{name: "a timer comes in time", rule: "Looks: AtTimer", regime: standstills, instead: standard.Looks &^ machine.AtTimer},
	// w0 stands still until w1 works, goes on, asks whether it may work, and hears that
	// no timer has said otherwise.
	{name: "a lease is valid until a timer ends it", rule: "Looks: AtQuestion", regime: standstills, instead: standard.Looks &^ machine.AtQuestion},
}

var (
	// standstills: processes stand still, or their machines are suspended.
	standstills = varied(func(f *sim.Faults) { f.Stalls, f.NoBoottime = 5*time.Minute, false }, every(time.Minute))
	// busy: the worker's goroutine is often kept for some seconds.
	busy = varied(func(f *sim.Faults) { f.SlowObserver = 0.2 }, func(_ int, w *workerlease.Options) {
		w.LeaseInterval = 10 * time.Second
	})
)

// stampVariants leave out a part of how uncertain a stamp is.
var stampVariants = []variant{
	// w0 has its time from a member whose clock is behind, and w1 from one whose clock
	// is ahead, each of them within what is allowed.
	{name: "all servers of a store agree about the time", rule: "Stamp.Skew", regime: uncertain, around: restamped(func(s *store.Stamp, _ time.Time) { s.Skew = 0 })},
	// The second member is the primary, and its clock is 3 s ahead. A worker that has just started
	// knows no other clock, and takes 100 ms for as much as servers differ.
	{
		name: "no server is off by more than is assumed", rule: "Stamp.Skew measured", regime: clocksApart, as: "two holders",
		around: restamped(func(s *store.Stamp, _ time.Time) { s.Skew = min(s.Skew, 100*time.Millisecond) }),
	},
	// w0 gets a stamp that was made a second before it was sent.
	{name: "a stamp is made when it is asked for", rule: "Stamp.MaxAge", regime: oldStamps, around: restamped(func(s *store.Stamp, _ time.Time) { s.MaxAge = 0 })},
	// The store shows whole seconds. It is nearly a second later when it does.
	{name: "a stamp is exact", rule: "Stamp.Granularity", regime: coarse, around: restamped(func(s *store.Stamp, _ time.Time) { s.Granularity = 0 })},
	// The store's answer takes a while. What w0 takes for now was then: the stamp lies back by as
	// much as the engine then adds for that.
	{name: "a stamp tells the time at which it arrives", rule: "round trip", regime: slow, around: restamped(func(s *store.Stamp, sent time.Time) {
		s.Time = s.Time.Add(-time.Since(sent))
	})},
	// w0's clock is slow by as much as is assumed, and w0 hasn't heard of the time for
	// most of its slot.
	{
		name: "a clock that was right stays right", rule: "MaxDrift", regime: drifting,
		around: clocked(func(c clock.Clock) clock.Clock { return trustedClock{c} }),
	},
	// The store says that its clock is w0's own. It is the clock of another machine, and w0's is
	// slow. So w0 works on when w1 has begun.
	{name: "each store is on the machine of its workers", rule: "Stamp.Boottime", regime: onOtherMachines, around: claimedSteady},
}

// claimedSteady lets each stamp say that it was made from the client's clock, just now.
func claimedSteady(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
	local, ok := boottime.Of(o.Clock)
	if !ok {
		panic("the client's clock reads no boot time")
	}
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) { s.Boottime = local.Boottime() }}, o
}

// clocksApart: in a replica set, one member's clock is 80 ms ahead, one's 3 s, and one can't be asked
// unless it is the primary. Primaries and processes change often.
func clocksApart(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 6, Length: 2 * time.Hour,
		Faults: sim.Faults{
			Latency: 20 * time.Millisecond, Drift: 0.001, Failovers: 5 * time.Minute, Restarts: 2 * time.Minute,
			Off:  []time.Duration{0, 3 * time.Second, 80 * time.Millisecond, -90 * time.Millisecond},
			Skew: 100 * time.Millisecond, Unasked: 4,
		},
		Worker: workers(func(_ int, w *workerlease.Options) { w.LeaseInterval = time.Minute }),
	}
}

// coarse: the store shows the time in whole seconds.
func coarse(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return workerlease.NewClient(&hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) {
			s.Time, s.Granularity = s.Time.Truncate(time.Second), 1000*s.Granularity
		}}, c)
	}
	return o
}

var (
	// slow: the store has one clock, which is right, and its answers take a while.
	slow = varied(func(f *sim.Faults) { f.Latency, f.Skew, f.StampAge = 300*time.Millisecond, 0, 0 }, nil)
	// drifting: the same, with answers that take no time, and clocks that drift.
	drifting = varied(func(f *sim.Faults) {
		f.Latency, f.Skew, f.StampAge, f.Drift, f.NoBoottime = time.Millisecond, 0, 0, 0.001, false
	}, every(5*time.Minute))
	// onOtherMachines: the same, with little to spare at the end of a lease.
	onOtherMachines = varied(func(f *sim.Faults) {
		f.Latency, f.Skew, f.StampAge, f.Drift, f.NoBoottime = time.Millisecond, 0, 0, 0.001, false
	}, func(n int, w *workerlease.Options) {
		every(5*time.Minute)(n, w)
		w.Margin = 20 * time.Millisecond
	})
)

// restamped lets the engine see stamps that were changed.
func restamped(change func(s *store.Stamp, sent time.Time)) around {
	return func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
		return &hooked{Ledger: l, stamp: change}, o
	}
}

// clocked lets the engine have another clock.
func clocked(change func(clock.Clock) clock.Clock) around {
	return func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
		o.Clock = change(o.Clock)
		return l, o
	}
}

// trustedClock goes slower by as much as the later edge of what the engine knows then
// goes faster, so that this doesn't widen.
type trustedClock struct{ clock.Clock }

func (c trustedClock) Boottime() time.Duration {
	d := c.Clock.(interface{ Boottime() time.Duration }).Boottime()
	return d - d/1000
}
