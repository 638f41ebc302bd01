package sim

import "time"

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
