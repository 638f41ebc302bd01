package sim

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// members is how many servers the store has. One at a time is in charge.
const members = 3

// server is the store's side: its members, their clocks, and when it is down.
type server struct {
	f         Faults
	seed      int64
	outages   outages
	elections outages
	steps     outages
	jumps     outages
}

func newServer(o Options) *server {
	f, end := o.Faults, o.Length
	s := &server{f: f, seed: o.Seed}
	s.outages = drawOutages(o.Seed, forOutages, 0, f.Outages, end, func(r *rand) (Fault, time.Duration) {
		return Outage, r.span(time.Second, 5*time.Minute)
	})
	s.elections = drawOutages(o.Seed, forFailovers, 0, f.Failovers, end, func(r *rand) (Fault, time.Duration) {
		return Failover, r.span(100*time.Millisecond, 12*time.Second)
	})
	s.steps = drawOutages(o.Seed, forSteps, 0, f.ClockSteps, end, func(*rand) (Fault, time.Duration) { return ClockStep, 1 })
	s.jumps = drawOutages(o.Seed, forJumps, 0, f.Jumps, end, func(*rand) (Fault, time.Duration) { return Jump, 1 })
	return s
}

// down is the fault that keeps the store from serving at a time, if any.
func (s *server) down(at time.Duration) Fault {
	if x, ok := s.outages.at(at); ok {
		return x.kind
	}
	if x, ok := s.elections.at(at); ok {
		return x.kind
	}
	return ""
}

// off is the error of the clock of the member in charge, and the member's name.
func (s *server) off(at time.Duration) (time.Duration, string) {
	member, step := s.elections.begun(at)%members, s.steps.begun(at)
	r := newRand(s.seed, forMember, member, step)
	off := r.either(s.f.Skew)
	if n := s.jumps.begun(at); n > 0 {
		r := newRand(s.seed, forMember, -1, n)
		by := r.span(s.f.JumpBy/1000, s.f.JumpBy)
		if r.chance(0.5) {
			by = -by
		}
		off += by
	}
	return off, fmt.Sprint("member", member)
}

// stamp is the store's time at a true time, by the clock of the member in charge.
func (w *world) stamp(at time.Duration, r *rand) store.Stamp {
	f := w.o.Faults
	off, name := w.server.off(at)
	if f.StampAge > 0 {
		w.tally.strike(CachedStamp)
		off -= r.upTo(f.StampAge)
	}
	return store.Stamp{
		Time:        w.origin.Add(at + off).Truncate(time.Millisecond),
		Granularity: time.Millisecond,
		MaxAge:      f.StampAge,
		Skew:        f.Skew,
		Server:      name,
	}
}
