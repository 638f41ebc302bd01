package sim

import (
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/skew"
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
	wrong     outages // when the clock is wrong; each of its changes is one of jumps
	lies      outages // after each of these, the next stamp of each client is wrong
	votes     outages // elections, in which some appends may be undone
	turn      int64   // whose it is to answer, if members answer in turn; guarded by world.mu
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
	s.votes = drawOutages(o.Seed, forElections, 0, f.Elections, end, func(r *rand) (Fault, time.Duration) {
		return Election, r.span(2*time.Second, 12*time.Second)
	})
	s.lies = drawOutages(o.Seed, forWrong, 0, f.WrongStamps, end, func(*rand) (Fault, time.Duration) { return WrongStamp, 1 })
	s.drawWrong(o.Seed, end)
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
	if len(s.f.Off) > 0 {
		member := s.charged(at)
		return s.f.Off[member], "member" + strconv.Itoa(member)
	}
	member, step := (s.elections.begun(at)+s.votes.begun(at))%members, s.steps.begun(at)
	if s.f.InTurn {
		s.turn++
		member = s.turn % members
	}
	r := newRand(s.seed, forMember, member, step)
	off := r.either(s.f.Skew)
	if s.f.Apart > 0 {
		off += time.Duration(member-1) * s.f.Apart
	}
	if x, ok := s.wrong.at(at); ok {
		r := newRand(s.seed, forClock, 1, int64(x.from))
		off += r.sign(r.span(time.Second, s.f.WrongClockBy))
	}
	if n := s.jumps.begun(at); n > 0 && s.f.Jumps > 0 {
		r := newRand(s.seed, forMember, -1, n)
		off += r.sign(r.span(s.f.JumpBy/1000, s.f.JumpBy))
	}
	return off, "member" + strconv.FormatInt(member, 10)
}

// drawWrong draws when the store's clock is wrong.
func (s *server) drawWrong(seed int64, end time.Duration) {
	s.wrong = drawOutages(seed, forClock, 0, s.f.WrongClocks, end, func(r *rand) (Fault, time.Duration) {
		long := r.span(time.Minute, time.Hour)
		if r.chance(1. / 3) {
			long = s.f.WrongClocks
		}
		return Jump, long
	})
	for _, x := range s.wrong {
		s.jumps = append(s.jumps, outage{x.from, x.from + 1, Jump}, outage{x.to, x.to + 1, Jump})
	}
}

// stamp is the store's time at a true time for a process, by the clock of the member that
// answers.
func (w *world) stamp(p *Process, at time.Duration, r *rand) store.Stamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.o.Faults
	off, name := w.server.off(at)
	if f.InTurn && name != p.health.member() {
		w.tally.strike(InTurn)
		if f.Apart > 0 {
			w.tally.strike(Apart)
		}
	}
	skew, clock := f.Skew, ""
	if len(f.Off) > 0 {
		skew, clock = w.measured(p, at, r), name
	}
	off += p.lie(at)
	made := at
	if f.StampAge > 0 {
		w.tally.strike(CachedStamp)
		made -= r.upTo(f.StampAge)
	}
	boottime := time.Duration(0)
	if w.o.OneMachine {
		boottime = p.host.boot + p.host.reading(made)
	}
	return store.Stamp{
		Boottime:    boottime,
		Time:        w.origin.Add(made + off).Truncate(time.Millisecond),
		Granularity: time.Millisecond,
		MaxAge:      f.StampAge,
		Skew:        skew,
		Server:      name,
		Clock:       clock,
		History:     w.history(),
	}
}

// lie is how wrong the stamp is that a process gets at a true time. The caller holds world.mu.
func (p *Process) lie(at time.Duration) time.Duration {
	w := p.world
	f := &w.o.Faults
	if !p.health.hasHeard() {
		r := newRand(w.o.Seed, forFirst, p.number, 0)
		if p.lied || !r.chance(f.FirstStamps) {
			return 0
		}
		p.lied = true
		return p.lies(FirstStamp, &r)
	}
	n := w.server.lies.begun(at)
	if n == w.server.lies.begun(p.trusted) {
		return 0
	}
	p.trusted = at
	r := newRand(w.o.Seed, forWrong, 1+p.host.worker, n)
	return p.lies(WrongStamp, &r)
}

// lies draws how wrong a stamp is. It is more than the process's clock may have drifted in a slot:
// what is wrong by less agrees with all that the process knows, and is believed.
func (p *Process) lies(kind Fault, r *rand) time.Duration {
	w := p.world
	w.tally.strike(kind)
	p.health.ail(w.now() + p.host.interval)
	least := time.Second + p.host.interval/250
	return r.sign(r.span(least, max(2*least, w.o.Faults.WrongBy)))
}

// hasHeard reports whether the process has got a stamp.
func (h *health) hasHeard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.samples[0].at > 0
}

// member is the one that has sent the newest stamp.
func (h *health) member() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server
}

// charged is the member in charge at a true time, if Faults.Off says how many there are.
func (s *server) charged(at time.Duration) int {
	return int((s.elections.begun(at) + s.votes.begun(at)) % int64(len(s.f.Off)))
}

// measured is the skew of a stamp that the member in charge makes at a true time, as the process
// that asked for it measures it: it asks the other members, too, of which it has heard nothing of
// late. The caller holds world.mu.
func (w *world) measured(p *Process, at time.Duration, r *rand) time.Duration {
	f := w.o.Faults
	names := make([]string, len(f.Off))
	for i := range names {
		names[i] = "member" + strconv.Itoa(i)
	}
	if p.clocks == nil {
		p.clocks = &skew.Clocks{Assumed: f.Skew}
		p.clocks.Keep(names)
	}
	local := func(at time.Duration) time.Duration { return p.host.boot + p.host.reading(at) }
	read := func(member int) {
		asked := max(0, at-r.upTo(2*f.Latency))
		shown := asked + r.upTo(at-asked) + f.Off[member]
		p.clocks.Read(names[member], skew.Reading{
			Time: w.origin.Add(shown).Truncate(time.Millisecond), Granularity: time.Millisecond,
			Sent: local(asked), Received: local(at),
		})
	}
	first := w.server.charged(at)
	read(first)
	for i, name := range names {
		switch {
		case i == first:
		case i == f.Unasked-1:
			p.clocks.Fail(name, local(at))
		case p.clocks.Need(name, local(at)) != skew.Nothing:
			read(i)
		}
	}
	apart, ok := p.clocks.Apart(names[first], local(at))
	if !ok {
		w.violate("%s knows no clock of %s, which has just answered", p.options.InstanceID, names[first])
	}
	return apart
}
