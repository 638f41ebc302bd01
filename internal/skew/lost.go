package skew

import "time"

// now is the bound of a server that is known, as of a local reading. A server that can't be
// asked for long is kept where it was seen last, give or take what is assumed: drift alone would
// put it days off in a month. But it may have been set anew while nobody could look.
func (c *Clocks) now(s *server, at time.Duration) (lo, hi int64) {
	if s.lost(at) {
		lo, hi = s.led()
		widened := max(int64(c.Assumed), drift(Stale))
		return lo - widened, hi + widened
	}
	widened := drift(at - s.at)
	return s.lo - widened, s.hi + widened
}

// lost reports whether a server can't be asked for long.
func (s *server) lost(at time.Duration) bool { return s.failed && at-s.at > Stale }

// lead is another server, which shows how the local clock drifts while a server can't be asked: that
// one is kept where it was by the other's clock. By the local clock alone, 20 ppm would put it 1.7 s
// off in a day.
type lead struct {
	by     *server
	lo, hi int64         // where that was when the server was kept
	gap    int64         // how far the local clock may have drifted between the answers of the two
	since  time.Duration // the local reading as of which the server is kept, or 0: that of its answer
}

// kept returns the local reading at which the bound of a server holds.
func (s *server) kept() time.Duration { return max(s.lead.since, s.at) }

// goBy makes another server the lead of s if it answered closer to the time when s was kept than the
// present lead did.
func (s *server) goBy(other *server) {
	gap := drift(other.at - s.kept())
	if other == s || !s.known || !other.known || other.failed || other.doubt != certain ||
		s.lead.by != nil && s.lead.gap <= gap {
		return
	}
	s.lead = lead{by: other, lo: other.lo - gap, hi: other.hi + gap, gap: gap, since: s.kept()}
}

// follow gives a server a new lead, unless its lead still answers.
func (c *Clocks) follow(s *server) {
	if s.lead.by != nil && s.lead.by.failed {
		s.arrive(s.lead.by.at)
	}
	for _, other := range c.servers {
		s.goBy(other)
	}
}

// led is the bound of a server that can't be asked, moved by the drift that its lead has shown since.
func (s *server) led() (lo, hi int64) {
	if s.lead.by == nil {
		return s.lo, s.hi
	}
	most := drift(s.lead.by.at - s.lead.since)
	down, up := max(s.lead.by.lo-s.lead.hi, -most), min(s.lead.by.hi-s.lead.lo, most)
	return s.lo + down, s.hi + up
}

// arrive ends a server's use of its lead, as of a local reading. If the server couldn't be asked, its
// bound becomes the one that the lead shows. Every server must arrive before a contradiction moves
// any bound.
func (s *server) arrive(at time.Duration) {
	switch {
	case s.lead.by == nil:
	case s.failed:
		s.lo, s.hi = s.led()
		s.lead = lead{since: at}
	default:
		s.lead = lead{}
	}
}
