package sim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// stampRegimes: the store's time is wrong.
var stampRegimes = []regime{
	{"lone wrong stamps", func(o *sim.Options, r *rand.Rand) {
		o.Faults.WrongStamps = pick(r, 20*time.Minute, time.Hour)
		o.Faults.WrongBy = pick(r, time.Minute, 2*time.Hour, 30*365*24*time.Hour)
	}, afterWrongStamps, through(stubborn), "nobody had a slot", false},
	{"wrong first stamps", func(o *sim.Options, r *rand.Rand) {
		o.Faults.FirstStamps, o.Faults.Restarts = 0.3, time.Hour
		o.Faults.WrongBy = pick(r, time.Minute, 2*time.Hour, 30*365*24*time.Hour)
		join := r.IntN(2) == 0
		eachWorker(o, func(n int, w *workerlease.Options) { w.WaitForBoundary = !(join && n%2 == 0) })
	}, idleFor(8), through(stubborn), "nobody had a slot", false},
	{"members that answer in turn", func(o *sim.Options, r *rand.Rand) {
		o.Faults.InTurn = true
	}, idleFor(0), restamped(func(s *store.Stamp) { s.Skew = 0 }), "works before its window", false},
	{"members that answer in turn and contradict each other", func(o *sim.Options, r *rand.Rand) {
		o.Faults.InTurn, o.Faults.Apart = true, pick(r, 300*time.Millisecond, time.Second)
	}, idleFor(1), through(farther), "nobody had a slot", false},
	{"wrong clocks", func(o *sim.Options, r *rand.Rand) {
		o.Faults.WrongClocks = pick(r, time.Hour, 3*time.Hour)
		o.Faults.WrongClockBy = pick(r, time.Minute, 10*time.Minute, 2*time.Hour, 26*time.Hour)
	}, afterWrongClocks, appending(func(r *store.Record) error {
		if r.Kind == store.KindReset {
			return errors.New("no resets")
		}
		return nil
	}), "nobody had a slot", false},
}

// afterWrongStamps: each of them costs at most one slot.
func afterWrongStamps(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	interval := o.Worker(0).LeaseInterval
	for i, x := range r.Wrong {
		until := o.Length
		if i+1 < len(r.Wrong) {
			until = r.Wrong[i+1].From
		}
		idle := time.Duration(0)
		for _, s := range without(r, o.Length) {
			if d := within(s, sim.Span{From: x.From, To: until}); d > late(o, interval)+o.Worker(0).Margin+300*time.Millisecond {
				idle += d
			}
		}
		if idle > interval+2*late(o, interval) {
			wrong = append(wrong, fmt.Sprintf("after a wrong stamp at %v, nobody had a slot for %v", x.From, idle))
		}
	}
	return wrong
}

// idleFor demands that nobody has no lease for longer than a number of slots.
func idleFor(slots time.Duration) func(sim.Options, *sim.Result, *tally) []string {
	return nobodyHad(func(o sim.Options, _ *sim.Result, s sim.Span) (long, most time.Duration) {
		interval := o.Worker(0).LeaseInterval
		return s.To - s.From, slots*interval + late(o, interval) + 2*o.Faults.Apart + 2*interval/100
	})
}

// mostAhead is how far ahead a window may begin that is obeyed: those that were granted by a clock
// which was then set back by less are waited for.
const mostAhead = 2 * priority.MaxLead

// afterWrongClocks: somebody leads again within the longest of a slot and the windows in force,
// five minutes, and the time until it is noticed. While a window is watched, it may come to be
// near enough to be obeyed.
var afterWrongClocks = nobodyHad(func(o sim.Options, r *sim.Result, s sim.Span) (long, most time.Duration) {
	interval, begin := o.Worker(0).LeaseInterval, s.From
	for _, x := range r.Wrong { // It counts from the latest change.
		for _, change := range []time.Duration{x.From, x.To} {
			if change <= s.To && change < o.Length && change > begin {
				begin = change
			}
		}
	}
	return s.To - begin, 3*interval + 5*time.Minute + mostAhead + 5*late(o, interval)
})

// stubborn repeats a wrong answer for most of an hour. In here, time.Now is true time.
func stubborn(l store.Ledger) store.Ledger {
	var mu sync.Mutex
	var off time.Duration
	var since time.Time
	return altered{Ledger: l, stamp: func(s *store.Stamp) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		switch d := s.Time.Sub(now); {
		case off != 0 && now.Sub(since) < 50*time.Minute:
			s.Time = s.Time.Add(off)
		case d.Abs() > 800*time.Millisecond:
			off, since = d, now
		}
	}}
}

// farther makes the clocks of the store's members a thousand times as wrong.
func farther(l store.Ledger) store.Ledger {
	return altered{Ledger: l, stamp: func(s *store.Stamp) { s.Time = s.Time.Add(1000 * time.Until(s.Time)) }}
}

// skewRegimes: the clocks of the store's members are further apart than is assumed.
var skewRegimes = []regime{
	{"members whose clocks are apart", func(o *sim.Options, r *rand.Rand) {
		apart(o, pick(r, 10*time.Minute, 30*time.Minute), pick(r, 0, 3*time.Minute, time.Hour), r.IntN(4))
	}, idleApart, restamped(func(s *store.Stamp) { s.Skew = min(s.Skew, 100*time.Millisecond) }), "works before its window", false},
}

// apart: a replica set elects another primary now and then, and processes come and go, so that many
// know one member alone. One member is 80 ms ahead, one 3 s, and one can't be asked while it isn't
// the primary.
func apart(o *sim.Options, elections, restarts time.Duration, turn int) {
	off := []time.Duration{0, 80 * time.Millisecond, 3 * time.Second, -90 * time.Millisecond}
	o.Faults.Skew, o.Faults.ClockSteps = 100*time.Millisecond, 0
	o.Faults.Off = slices.Concat(off[turn:], off[:turn])
	o.Faults.Unasked = 1 + (3-turn+4)%4
	o.Faults.Failovers, o.Faults.Restarts = elections, restarts
	eachWorker(o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval = max(w.LeaseInterval, time.Minute)
	})
}

// idleApart: nobody has a lease for as long only as the clocks are apart, after an election for a
// slot.
var idleApart = nobodyHad(func(o sim.Options, r *sim.Result, s sim.Span) (long, most time.Duration) {
	interval := o.Worker(0).LeaseInterval
	// The clock of the member that can't be asked is known to within the assumed skew and a round trip.
	off := 3100*time.Millisecond + o.Faults.Skew + 2*o.Faults.Latency
	boundary := late(o, interval) + o.Worker(0).Margin + 2*off + 400*time.Millisecond
	most = boundary
	for _, d := range r.Down {
		if d.From <= s.To && d.To+interval > s.From {
			most = interval + lead(interval) + 3*boundary + (d.To - d.From)
		}
	}
	if o.Faults.Restarts > 0 {
		return 0, most
	}
	return s.To - s.From, most
})

// machineRegimes: all workers are on one machine, by whose clock the store goes.
var machineRegimes = []regime{
	{"one machine", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		o.Faults.Restarts = pick(r, 0, time.Hour)
	}, gapIsTheMargin, drifting, "works before its window", false},
	{"one machine, and lone wrong stamps", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		o.Faults.WrongStamps, o.Faults.WrongBy = pick(r, 20*time.Minute, time.Hour), pick(r, time.Minute, 2*time.Hour)
		if r.IntN(2) == 0 {
			through(silentAtTimes)(o)
		}
	}, afterWrongStamps, through(stubborn), "nobody had a slot", false},
	{"one machine, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		onOneMachine(o)
		f := &o.Faults
		f.Latency, f.StampAge = pick(r, 5*time.Millisecond, 300*time.Millisecond), pick(r, 0, 0, time.Second)
		f.Restarts, f.Stalls, f.Outages = 20*time.Minute, pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver = 0.02, 0.1, 0.1, 0.02, 0.01
		join, parts := r.IntN(2) == 0, pick(r, 0, 0, time.Second)
		eachWorker(o, func(n int, w *workerlease.Options) { w.WaitForBoundary, w.FailoverWithin = !(join && n%2 == 0), parts })
		if r.IntN(2) == 0 {
			through(silentAtTimes)(o)
		}
	}, nothingMore, drifting, "works before its window", false},
}

// onOneMachine: there is one clock, and stamps say so.
func onOneMachine(o *sim.Options) {
	o.OneMachine = true
	f := &o.Faults
	f.Skew, f.Drift, f.ClockSteps, f.NoBoottime = 0, 0, 0, false
	eachWorker(o, func(_ int, w *workerlease.Options) { w.Margin = 20 * time.Millisecond })
}

// drifting: the workers are on machines of their own.
func drifting(o *sim.Options) {
	o.Faults.Drift, o.Faults.Latency, o.Faults.StampAge = 0.001, time.Millisecond, 0
	eachWorker(o, func(_ int, w *workerlease.Options) { w.LeaseInterval = 5 * time.Minute })
}

// silentAtTimes leaves out of every third stamp whose clock it is of.
func silentAtTimes(l store.Ledger) store.Ledger {
	var n atomic.Int64
	return altered{Ledger: l, stamp: func(s *store.Stamp) {
		if n.Add(1)%3 == 0 {
			s.Boottime = 0
		}
	}}
}

// gapIsTheMargin demands that between two slots nobody works for the margin, and for how exact stamps
// and timers are, but no longer. A process that ends leaves its slot to nobody.
func gapIsTheMargin(o sim.Options, r *sim.Result, _ *tally) (wrong []string) {
	margin := o.Worker(0).Margin
	for i, l := range r.Leases {
		if i == 0 {
			continue
		}
		before := r.Leases[i-1]
		gap, most := l.Began-before.Ended, margin+5*time.Millisecond
		if before.Why == workerlease.WindowEnded && l.Start == before.End && gap > most {
			wrong = append(wrong, fmt.Sprintf("nobody had a slot for %v before %v, want %v at most", gap, l, most))
		}
	}
	return wrong
}
