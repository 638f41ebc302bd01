package sim

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/workerlease"
)

// Random draws a run from a seed: eight workers for six hours, slots of 10 s, one minute or
// five, and all kinds of faults within the assumptions. Each fault has a rate of its own,
// which often is zero. slotlease itself is tested with it. Set Callbacks on the result to
// test your own code in the same way.
func Random(seed int64) Options {
	r := newRand(seed, forMix, 0, 0)
	rate := func(most float64) float64 { return most * max(0, r.float()*1.5-0.5) }
	every := func(d time.Duration) time.Duration {
		long := r.span(d/4, 4*d)
		if r.chance(0.4) {
			return 0
		}
		return long
	}
	// The shorter the slots, the more work a run is: draw them less often.
	interval := 5 * time.Minute
	switch n := r.below(16); {
	case n == 0:
		interval = 10 * time.Second
	case n < 8:
		interval = time.Minute
	}
	f := Faults{
		Latency: r.span(time.Millisecond, 300*time.Millisecond),
		Delayed: rate(0.1), Failed: rate(0.1), LostReply: rate(0.2), BlackHole: rate(0.1), Throttled: rate(0.1),
		OwnConflict: rate(0.2), Late: rate(0.2), Stale: rate(0.2),
		LateBy:     []time.Duration{time.Minute, 3 * time.Hour, 24 * time.Hour}[r.below(3)],
		Partitions: every(30 * time.Minute),
		Outages:    every(time.Hour), Failovers: every(30 * time.Minute), ClockSteps: every(20 * time.Minute),
		Restarts: every(40 * time.Minute), Stalls: every(20 * time.Minute), WallSteps: every(20 * time.Minute),
		Drift:    0.001 * min(1, 2*r.float()),
		TimerOff: rate(0.05), SlowObserver: rate(0.02),
		Poisons: every(2 * time.Hour), NewerVersions: every(time.Hour), HugeSeqs: every(2 * time.Hour), Holes: 0.3,
		Blocked: rate(0.1), Panicked: rate(0.1),
		NoBoottime: r.chance(0.4), NoFreeStamp: r.chance(0.5),
	}
	if f.Stalls == 0 && !f.NoBoottime {
		f.NoBoottime = r.chance(0.8) // It only matters in a suspend.
	}
	switch r.below(4) {
	case 0: // one server with the right time
		f.Failovers, f.ClockSteps = 0, 0
	case 1:
		f.StampAge = time.Second
		fallthrough
	default:
		f.Skew = []time.Duration{100 * time.Millisecond, 250 * time.Millisecond}[r.below(2)]
	}
	if interval <= time.Minute && r.chance(0.3) {
		// Many keys are trimmed, and appends land on them hours later.
		f.Late, f.LateBy = 0.3, 6*time.Hour
	}
	mixed, groups, twins := r.chance(0.15), r.chance(0.25), r.chance(0.1)
	tie := []priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random}[r.below(3)]
	retention := []time.Duration{2 * time.Hour, 3 * time.Hour, 24 * time.Hour}[r.below(3)]
	week, second := r.chance(0.3), 2*interval
	if r.chance(0.3) {
		second = 5 * time.Second
	}
	joins := r.chance(0.3)
	if foreign := newRand(seed, forPlant, 3, 0); foreign.chance(0.3) {
		f.Foreign = foreign.span(time.Hour, 4*time.Hour)
	}
	return Options{
		Seed: seed, Workers: 8, Length: 6 * time.Hour, Faults: f,
		Worker: func(worker int) workerlease.Options {
			o := workerlease.Options{
				WorkerType: "sim", InstanceID: fmt.Sprint("w", worker), Priority: worker / 2,
				TieBreak: tie, LeaseInterval: interval, Retention: retention, WaitForBoundary: worker%4 != 1,
			}
			if groups && worker < 4 {
				o.Group = fmt.Sprint("g", worker%2)
			}
			if twins && worker%2 == 1 {
				o.InstanceID = fmt.Sprint("w", worker-1)
			}
			if mixed {
				o.LeaseInterval = []time.Duration{interval, second, 7 * interval}[worker%3]
				if week && worker == 7 {
					o.LeaseInterval, o.WaitForBoundary = aWeek, !joins
				}
			}
			return o
		},
	}
}

// aWeek is a week, less a few minutes, so that one of its boundaries falls 3 h 12 min into a
// run: a run begins at the start of the year 2000. The worker that has the slot after that
// boundary leaves nothing to others unless it is stopped in order. So only some of its
// processes take the rest of the slot in which they start.
const aWeek = 7*24*time.Hour - 21*time.Minute

// RandomExtended draws a run as Random does, in which leases are extended, by
// FailoverWithin, by Continuous or by both, or in which DefaultTask runs once per slot. Some
// workers may have other options than the rest.
func RandomExtended(seed int64) Options {
	o := Random(seed)
	r := newRand(seed, forMix, 2, 0)
	kind, part, odd := r.below(6), 2+r.below(6), r.chance(0.2)
	stay, most := r.chance(0.4), r.below(4)
	once := kind > 3
	if once {
		o.Task = DefaultTask
	}
	inner := o.Worker
	o.Worker = func(worker int) workerlease.Options {
		w := inner(worker)
		w.Group = ""
		if odd && worker%3 == 2 && !once {
			return w
		}
		if kind != 0 && w.LeaseInterval <= time.Hour {
			w.FailoverWithin = w.LeaseInterval / time.Duration(part)
		}
		if once {
			catch := workerlease.CatchUpNone
			if stay {
				catch = workerlease.CatchUpNewest
			}
			w.Job = &workerlease.Job{MaxAttempts: most, CatchUp: catch, StartWithin: w.LeaseInterval, Overrun: workerlease.Stop}
			if stay && w.LeaseInterval >= 24*time.Hour {
				w.Job.CatchUpWithin = 2 * w.LeaseInterval // The default is less than it may begin late.
			}
			return w
		}
		w.Continuous = kind != 1
		w.NoFailback = w.Continuous && stay
		return w
	}
	o.hinted()
	return o
}

// hinted lets the store give hints, in some runs, and their faults strike.
func (o *Options) hinted() {
	r := newRand(o.Seed, forHints, 0, 0)
	o.Hints = r.chance(0.6)
	if !o.Hints {
		return
	}
	f := &o.Faults
	f.HintLost, f.HintLate, f.HintTwice = r.float(), 0.5*r.float(), 0.3*r.float()
	switch r.below(6) {
	case 0:
		f.HintLost = 1
	case 1, 2:
		f.HintLost, f.HintLate = 0, 0
	}
	if r.chance(0.5) {
		f.HintLies = r.span(time.Second, 10*time.Minute)
	}
	if r.chance(0.3) {
		f.WatchBreaks = r.span(time.Minute, time.Hour)
	}
}

// RandomSlow draws a run as Random or RandomExtended does, on a store that is slow, or far from
// some of the hosts: a call takes up to as long as claims are open before their slot.
func RandomSlow(seed int64) Options {
	o := Random(seed)
	r := newRand(seed, forMix, 3, 0)
	if r.chance(0.5) {
		o = RandomExtended(seed)
	}
	lead := priority.Lead(o.Worker(0).LeaseInterval, 0)
	switch r.below(3) {
	case 0:
		o.Faults.Latency = r.span(lead/20, lead/2)
	case 1:
		o.Faults.Distance = r.span(lead/10, lead)
	case 2:
		o.Faults.Latency, o.Faults.Distance = r.span(lead/50, lead/10), r.span(lead/10, lead/2)
	}
	return o
}

// RandomBeyond draws a run as Random does, and breaks one assumption: the store's clock
// jumps, or hosts freeze, or records that others have read are rolled back, or clocks drift
// 25 times faster than assumed. Two holders may then work at once.
func RandomBeyond(seed int64) Options {
	o := Random(seed)
	r := newRand(seed, forMix, 1, 0)
	f := &o.Faults
	f.Poisons, f.HugeSeqs, f.Foreign = 0, 0, 0 // The fence alone is of interest.
	switch r.below(4) {
	case 0:
		f.Jumps = r.span(10*time.Minute, 2*time.Hour)
	case 1:
		f.Freezes, f.Stalls = r.span(5*time.Minute, time.Hour), 0
	case 2:
		// A stale read would be reported as if it were a rollback.
		f.Rollback, f.Stale = 0.05+0.2*r.float(), 0
	case 3:
		f.Drift = 0.025
	}
	return o
}
