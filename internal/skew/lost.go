package skew

import "time"

// lead is another server, which shows how the local clock drifts while a server can't be asked: that
// one is kept where it was by the other's clock. By the local clock alone, 20 ppm would put it 1.7 s
// off in a day.
type lead struct {
	by     *server
	lo, hi int64         // where that was when the server was kept
	since  time.Duration // the local reading as of which the server is kept, or 0: that of its answer
}

// follow gives a server that can't be asked another one to go by, if it has none that answers.
func (c *Clocks) follow(s *server) {
	if !s.known || s.doubt == open || s.lead.by != nil && !s.lead.by.failed {
		return
	}
	var best *server
	for _, other := range c.servers {
		if other != s && other.known && !other.failed && other.doubt == certain && (best == nil || other.at > best.at) {
			best = other
		}
	}
	if best == nil {
		return
	}
	if s.lead.by != nil {
		s.arrive(s.lead.by.at)
	}
	kept := max(s.lead.since, s.at)
	widened := drift(best.at - kept)
	s.lead = lead{by: best, lo: best.lo - widened, hi: best.hi + widened, since: kept}
}

// led is the bound of a server that can't be asked, as far as the other has drifted since.
func (s *server) led() (lo, hi int64) {
	if s.lead.by == nil {
		return s.lo, s.hi
	}
	most := drift(s.lead.by.at - s.lead.since)
	down, up := max(s.lead.by.lo-s.lead.hi, -most), min(s.lead.by.hi-s.lead.lo, most)
	return s.lo + down, s.hi + up
}

// arrive ends that a server goes by another: it is where that has led it, as of a local reading. All
// are to arrive before a contradiction moves any bound.
func (s *server) arrive(at time.Duration) {
	if s.lead.by != nil {
		s.lo, s.hi = s.led()
		s.lead = lead{since: at}
	}
}
