package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// quiet is a seed's run in a world without faults but those of every network:
// latency, and servers and hosts whose clocks are a little off.
func quiet(seed int64, interval time.Duration) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 6, Length: 3 * time.Hour,
		Worker: func(worker int) workerlease.Options {
			return workerlease.Options{
				WorkerType: "quiet", InstanceID: fmt.Sprint("w", worker), Priority: worker / 2, LeaseInterval: interval,
			}
		},
		Faults: sim.Faults{
			Latency: 50 * time.Millisecond, Skew: 100 * time.Millisecond, Drift: 0.001, ClockSteps: 20 * time.Minute,
			WallSteps: 20 * time.Minute, NoBoottime: seed%2 == 0, NoFreeStamp: seed%3 == 0,
		},
	}
}

var intervals = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// lead of a slot, by default.
func lead(interval time.Duration) time.Duration { return min(interval/4, 10*time.Second) }

// late is how long after its start a slot may begin: until it has surely begun.
func late(o sim.Options, interval time.Duration) time.Duration {
	f := o.Faults
	return 2*f.Skew + 2*f.Latency + interval/400 + 20*time.Millisecond
}

// each runs a test for each interval and some seeds.
func each(t *testing.T, seeds int64, f func(t *testing.T, seed int64, interval time.Duration)) {
	t.Helper()
	for _, interval := range intervals {
		for seed := range seeds {
			t.Run(fmt.Sprint(interval, "/", seed), func(t *testing.T) {
				t.Parallel()
				f(t, seed, interval)
			})
		}
	}
}

func TestWithAHealthyStoreEachSlotIsTakenByItsBoundaryByTheHighestPriority(t *testing.T) {
	skipUnderRace(t)
	each(t, 4, func(t *testing.T, seed int64, interval time.Duration) {
		o := quiet(seed, interval)
		r := sim.Run(t, o)
		r.Check(t)
		if len(r.Leases) == 0 {
			t.Fatal("no leases")
		}
		// Every demand applies at each boundary but the first ones.
		slots := int((o.Length-time.Minute)/interval) - 4
		if d := r.Demands; d.Boundaries < 2*slots || d.Turns < slots || d.Entries < slots {
			t.Errorf("in %d slots of %d workers, this was looked at:\n%v", slots, o.Workers, d)
		}
		// All start within a minute, and wait for the next boundary.
		if first, most := r.Leases[0].Start, max(time.Minute, interval); first > most {
			t.Errorf("the first slot that is taken starts at %v, want %v at the latest", first, most)
		}
		if got, want := len(r.Leases), int((o.Length-r.Leases[0].Start)/interval); got < want {
			t.Errorf("%d leases, want %d", got, want)
		}
		for i, l := range r.Leases {
			if d := l.Began - l.Start; d > late(o, interval) || i > 0 && l.Start != r.Leases[i-1].Start+interval {
				t.Errorf("%v begins %v after its slot, or leaves one out", l, d)
			}
			if i > 1 && l.Worker > 1 {
				t.Errorf("%v goes to a lower priority", l)
			}
		}
	})
}

// A lower priority wins over a higher one that is alive only if the claim of the higher one
// took longer than a step.
func TestOnlyASlowClaimLosesToALowerPriority(t *testing.T) {
	skipUnderRace(t)
	each(t, 4, func(t *testing.T, seed int64, interval time.Duration) {
		o := quiet(seed, interval)
		o.Faults.Restarts, o.Faults.Latency, o.Faults.Skew = 20*time.Minute, 10*time.Millisecond, 10*time.Millisecond
		r := sim.Run(t, o)
		r.Check(t)
		if r.Inversions > 0 {
			t.Errorf("%d inversions, with calls that take less than a step", r.Inversions)
		}
	})
	slow := 0
	for seed := range int64(4) {
		o := quiet(seed, 10*time.Second)
		o.Faults.Delayed = 0.2
		slow += sim.Run(t, o).Inversions
	}
	if slow == 0 {
		t.Error("no inversions with slow calls either: are they counted?")
	}
}

func TestAfterAnOutageTheSlotIsTakenWithinOneLead(t *testing.T) {
	skipUnderRace(t)
	each(t, 4, func(t *testing.T, seed int64, interval time.Duration) {
		o := quiet(seed, interval)
		o.Faults.Outages = 15 * time.Minute
		r := sim.Run(t, o)
		r.Check(t)
		if len(r.Down) < 3 {
			t.Fatalf("%d outages", len(r.Down))
		}
		for _, down := range r.Down {
			// Workers try again after at most this, and then go by their turns.
			by := down.To + min(5*time.Second, interval/8) + lead(interval) + late(o, interval)
			// If claims for the next slot are open by then, that slot counts; and if it has just begun,
			// the time when it surely has.
			if left := interval - by%interval; left < lead(interval)+late(o, interval) {
				by += left
			}
			if by%interval < late(o, interval) {
				by += late(o, interval)
			}
			if by < o.Length-interval && !held(r, by) {
				t.Errorf("nobody works at %v, after the outage %v", by, down)
			}
		}
	})
}

// held reports whether a process held a lease at a time.
func held(r *sim.Result, at time.Duration) bool {
	return slices.ContainsFunc(r.Leases, func(l *sim.Lease) bool { return l.Began <= at && at <= l.Ended })
}

func TestPoisonClearsWithinItsBound(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	poisoned, cleared := 0, 0
	seeds := part(t, 8)
	for seed := range seeds {
		interval := intervals[1+seed%2]
		o := quiet(seed, interval)
		o.Length = 60 * time.Hour
		o.Faults.Poisons = 8 * time.Hour
		r := sim.Run(t, o)
		r.Check(t)
		cleared += r.Demands.Cleared
		for i, p := range r.Planted {
			// The bound is the longest of a slot and of the windows of all records that lie on top of
			// each other, up to a day, plus 5 min. Poison is seen in the first lead, and superseded in
			// the first lead in which it is old enough.
			bound := interval
			for j := i; j >= 0 && r.Planted[j].Record.Seq == p.Record.Seq-int64(i-j); j-- {
				if x := r.Planted[j].Record; x.CheckEnvelope() == nil {
					bound = max(bound, min(x.WindowEnd.Sub(x.WindowStart), 24*time.Hour))
				}
			}
			by := p.At + bound + 5*time.Minute + 3*interval
			if by > o.Length || i+1 < len(r.Planted) && r.Planted[i+1].At < by {
				continue
			}
			poisoned++
			if !held(r, by+late(o, interval)) && !held(r, by+interval/2) {
				t.Errorf("seed %d: nobody works at %v, after %s was planted at %v: %+v", seed, by, p.Kind, p.At, p.Record)
			}
		}
	}
	if poisoned < int(seeds)*3/2 {
		t.Errorf("only %d records were planted with time to clear", poisoned)
	}
	if cleared < poisoned*3/4 {
		t.Errorf("of %d records that had time to clear, the world demanded it of %d only", poisoned, cleared)
	}
}

// Each fault alone costs almost no slot: workers claim again before the boundary, or right
// after. Only a crash loses the lease that its process held.
func TestOneFaultAtATimeKeepsTheSlots(t *testing.T) {
	skipUnderRace(t)
	for name, set := range map[string]func(*sim.Faults){
		"high latency":         func(f *sim.Faults) { f.Latency = 300 * time.Millisecond },
		"slow calls":           func(f *sim.Faults) { f.Delayed = 0.1 },
		"failures":             func(f *sim.Faults) { f.Failed = 0.1 },
		"lost replies":         func(f *sim.Faults) { f.LostReply = 0.2 },
		"black holes":          func(f *sim.Faults) { f.BlackHole = 0.1 },
		"throttling":           func(f *sim.Faults) { f.Throttled = 0.1 },
		"own conflicts":        func(f *sim.Faults) { f.OwnConflict = 0.2 },
		"late appends":         func(f *sim.Faults) { f.Late, f.LateBy = 0.2, 90*time.Minute },
		"stale reads":          func(f *sim.Faults) { f.Stale = 0.2 },
		"old stamps":           func(f *sim.Faults) { f.StampAge = time.Second },
		"failovers":            func(f *sim.Faults) { f.Failovers = 20 * time.Minute },
		"partitions":           func(f *sim.Faults) { f.Partitions = 30 * time.Minute },
		"stalls":               func(f *sim.Faults) { f.Stalls, f.NoBoottime = 20*time.Minute, false },
		"crashes":              func(f *sim.Faults) { f.Restarts = 40 * time.Minute },
		"odd timers":           func(f *sim.Faults) { f.TimerOff = 0.2 },
		"slow observers":       func(f *sim.Faults) { f.SlowObserver = 0.02 },
		"panics":               func(f *sim.Faults) { f.Panicked = 0.2 },
		"overruns":             func(f *sim.Faults) { f.Blocked = 0.2 },
		"newer versions":       func(f *sim.Faults) { f.NewerVersions = 10 * time.Minute },
		"records out of reach": func(f *sim.Faults) { f.HugeSeqs = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leases, slots := 0, 0
			for seed := range int64(3) {
				o := quiet(seed, time.Minute)
				set(&o.Faults)
				r := sim.Run(t, o)
				r.Check(t)
				last := time.Duration(-1)
				for _, l := range r.Leases {
					if l.Start/time.Minute > last {
						leases++
					}
					last = l.Start / time.Minute
				}
				slots += int(o.Length/time.Minute) - 2
			}
			t.Logf("%d of %d slots", leases, slots)
			if leases < slots*97/100 {
				t.Errorf("%d of %d slots were taken", leases, slots)
			}
		})
	}
}

// idle is the longest time outside of outages for which no worker had a slot, when it ended, and
// the time that was checked: up to the first poison, which is watched before it is superseded,
// and only if the intervals of the workers don't differ.
func idle(o sim.Options, r *sim.Result) (longest, at, looked time.Duration) {
	until := o.Length
	for i := range o.Workers {
		if o.Worker(i).LeaseInterval != o.Worker(0).LeaseInterval {
			return 0, 0, 0
		}
	}
	for _, p := range r.Planted {
		if p.Kind == sim.Poison || p.Kind == sim.Foreign {
			until = min(until, p.At)
		}
	}
	end := time.Minute // All have started by then.
	look := func(to time.Duration) {
		to = min(to, until)
		d := to - end
		for _, down := range r.Down {
			d -= max(0, min(to, down.To)-max(end, down.From))
		}
		if d > longest {
			longest, at = d, to
		}
	}
	for _, l := range r.Leases {
		look(l.Start)
		end = max(end, l.End)
	}
	look(o.Length)
	return longest, at, until
}

// mostIdle bounds the time for which no worker has a slot in a world of many faults. A slot is
// lost if the worker that claimed it dies, and that can happen again. After an outage or a
// pause it takes a while until all workers are back.
func mostIdle(o sim.Options) time.Duration { return 3*o.Worker(0).LeaseInterval + time.Minute }
