package sim

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// host is the machine of one worker, with its clocks and its connection. Processes come and
// go on it.
type host struct {
	worker   int64
	options  workerlease.Options
	rate     float64       // of its clocks, by true time
	boot     time.Duration // its boot time when the run began
	wall     time.Duration // how wrong its time of day is, at most
	boottime bool          // its clocks report boot time
	far      time.Duration // what the distance adds to each way of a call
	steps    outages       // of its time of day
	stalls   outages       // Pause, Suspend or Freeze
	cuts     outages       // Partition or OneWay
	ills     outages       // Unfit

	// interval is the length of the worker's slots, and schedule cuts time by it. plain says that
	// the worker has no other Schedule.
	interval time.Duration
	schedule slots.Schedule
	plain    bool

	running *Process // that runs on it now; guarded by world.mu
}

func (w *world) newHost(worker int64) *host {
	f, end := w.o.Faults, w.o.Length
	r := newRand(w.o.Seed, forHost, worker, 0)
	h := &host{
		worker: worker, options: w.o.Worker(int(worker)),
		// Rates are bounded as the time line bounds them: the difference as a part of
		// the local reading.
		rate:     1 / (1 + f.Drift*(2*r.float()-1)),
		boot:     r.span(time.Second, 10000*time.Hour),
		boottime: !f.NoBoottime,
	}
	if f.Distance > 0 {
		r := newRand(w.o.Seed, forDistance, worker, 0)
		h.far = r.upTo(f.Distance / 2)
	}
	h.interval = h.options.LeaseInterval
	if h.interval == 0 {
		h.interval = slots.DefaultInterval
	}
	if every, err := slots.Every(h.interval); err == nil {
		h.schedule, h.plain = every, h.options.Schedule == nil
	}
	h.stalls = drawOutages(w.o.Seed, forStalls, worker, f.Stalls, end, func(r *rand) (Fault, time.Duration) {
		kind := Pause
		if r.chance(0.4) && h.boottime {
			kind = Suspend
		}
		return kind, r.span(time.Millisecond, 10*time.Minute)
	})
	if f.Freezes > 0 {
		h.stalls = drawOutages(w.o.Seed, forStalls, worker, f.Freezes, end, func(r *rand) (Fault, time.Duration) {
			return Freeze, r.span(time.Second, 10*time.Minute)
		})
	}
	h.cuts = drawOutages(w.o.Seed, forCuts, worker, f.Partitions, end, func(r *rand) (Fault, time.Duration) {
		kind := Partition
		if r.chance(0.5) {
			kind = OneWay
		}
		return kind, r.span(time.Second, f.Partitions/2)
	})
	h.ills = w.drawIlls(worker)
	if f.WallSteps > 0 {
		h.wall = time.Hour
		h.steps = drawOutages(w.o.Seed, forWall, worker, f.WallSteps, end, func(*rand) (Fault, time.Duration) {
			return WallStep, 1
		})
	}
	return h
}

// stood is how long the host had stalls of a kind by a true time, in all.
func (h *host) stood(kind Fault, at time.Duration) (sum time.Duration) {
	for _, s := range h.stalls {
		if s.kind == kind && s.from < at {
			sum += min(s.to, at) - s.from
		}
	}
	return sum
}

// reading of the host's steady clock at a true time.
func (h *host) reading(at time.Duration) time.Duration {
	if len(h.stalls) > 0 && h.stalls[0].kind == Freeze {
		at -= h.stood(Freeze, at)
	}
	return time.Duration(float64(at) * h.rate)
}

// fires is when a timer of a local duration, set at a true time, is due and the process
// runs.
func (h *host) fires(at, d time.Duration) time.Duration {
	due := at + time.Duration(float64(d)/h.rate)
	for i := h.stalls.after(at); i < len(h.stalls) && h.stalls[i].from < due; i++ {
		if s := h.stalls[i]; s.kind != Pause {
			due += s.to - max(s.from, at)
		}
	}
	return h.stalls.resume(due)
}
