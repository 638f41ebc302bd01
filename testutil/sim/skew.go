package sim

import (
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/skew"
)

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
