// Package skew measures how far the clocks of a store's servers are apart. It is pure: the
// caller asks the servers, and says by its own local clock when it asked and when the
// answer came.
//
// An answer bounds the offset between a server's clock and the local clock: the server's clock
// was read between the two. The bound widens by [MaxDrift] of its age, and successive bounds are
// intersected. Two servers are apart by as much as their bounds allow, at most. So the local
// clock can show any time of day, but it must go on steadily between two answers.
//
// A server that can't be asked is assumed to be within Clocks.Assumed: of where it was seen last
// or, if it never answered, of those that did answer. It is kept there by the clock of another
// server, since the local clock drifts for as long. A jump of another clock doesn't change that: it
// stays where it was or, if the local clock stood still, moves as the others did.
//
// Two cases aren't covered: two jumps between two answers of a server, and, for [Stale], a step by
// less than the round trip.
package skew

import (
	"cmp"
	"slices"
	"time"
)

// MaxDrift is the most by which the rates of the local clock and of a server's clock may
// differ: 1000 ppm, as the engine assumes of store time.
const MaxDrift = 1.0 / perDrift

const perDrift = 1000

const (
	// Fresh is how old an answer may be for the server not to be asked again.
	Fresh = 2 * time.Second
	// Stale is how old an answer may be for a stamp that doesn't wait for another one. A bound
	// of that age has widened by 30 ms each way.
	Stale = 30 * time.Second
)

// Need says what the clock of a server needs before the clocks may be compared.
type Need int

// The needs.
const (
	// Nothing: the server has just answered.
	Nothing Need = iota
	// Asking: the server should be asked, but what is known of it will do, or it has just failed
	// to answer.
	Asking
	// Trying: the server failed to answer when it was asked last, over Stale ago. It must be asked,
	// and its answer waited for as long as one takes: it may be back.
	Trying
	// Waiting: the server must be asked and its answer, or failure, waited for.
	Waiting
)

// Reading is a server's clock as it was read between two readings of the local clock.
type Reading struct {
	// Time is what the clock showed, truncated to Granularity.
	Time        time.Time
	Granularity time.Duration
	// Sent and Received are local: when the server was asked, and when the answer came.
	Sent, Received time.Duration
}

// Clocks is what is known of the clocks of some servers. The zero Clocks knows nothing. It is
// not safe for concurrent use.
type Clocks struct {
	// Assumed is how far the clock of a server that can't be asked may be off.
	Assumed time.Duration

	servers []*server
	jump    jump // the newest
}

// server is one of them. Its clock minus the local clock was within [lo, hi] nanoseconds at the
// local reading at, if it is known.
type server struct {
	name   string
	known  bool
	failed bool // when it was asked last
	// failedAt is the local reading of the newest failure.
	failedAt time.Duration
	doubt    doubt
	lo, hi   int64
	at       time.Duration
	// loSince and hiSince are when the answers came that lo and hi rest on.
	loSince, hiSince time.Duration
	lead             lead // by which it is kept if it can't be asked
}

// Keep sets the servers whose clocks count, and forgets all others.
func (c *Clocks) Keep(names []string) {
	kept := make([]*server, 0, len(names))
	for _, name := range names {
		s := c.find(name)
		if s == nil {
			s = &server{name: name}
		}
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	for _, s := range kept {
		if s.lead.by != nil && !slices.Contains(kept, s.lead.by) {
			s.arrive(s.lead.by.at)
		}
	}
	c.servers = kept
}

func (c *Clocks) find(name string) *server {
	if i := slices.IndexFunc(c.servers, func(s *server) bool { return s.name == name }); i >= 0 {
		return c.servers[i]
	}
	return nil
}

// Read takes in an answer. If it contradicts what was known of the server, the server's clock
// was set or the local clock stood still (a suspend of the machine). Which of the two isn't
// known, so all that was measured before of the others is in doubt: they are to be asked anew, and
// until then either may be true.
func (c *Clocks) Read(name string, r Reading) {
	s := c.find(name)
	if s == nil {
		return // It was removed meanwhile.
	}
	s.lead = lead{}
	c.take(s, r)
	c.follow(s)
	for _, other := range c.servers {
		other.goBy(s)
	}
}

// take takes in the answer of a server.
func (c *Clocks) take(s *server, r Reading) {
	trip := r.Received - r.Sent
	lo := r.Time.UnixNano() - int64(r.Received)
	hi := lo + int64(r.Granularity+trip) + drift(trip)
	s.failed = false
	if !s.known {
		s.known = true
		s.set(lo, hi, r.Received)
		return
	}
	if s.doubt != certain && r.Sent < c.jump.at {
		return // It may show the clock from before the jump. The server is asked anew.
	}
	at := max(s.at, r.Received)
	old, late := drift(at-s.at), drift(at-r.Received)
	wasLo, wasHi := s.lo-old, s.hi+old
	lo, hi = lo-late, hi+late
	if wasLo <= hi && lo <= wasHi {
		c.dispel(s, wasLo, wasHi, lo, hi)
		s.narrow(wasLo, wasHi, lo, hi, at)
		return
	}
	for _, other := range c.servers {
		other.arrive(at) // Drift since the newest answers is part of what is assumed.
	}
	if r.Sent < s.at {
		// Which of the two answers is the newer one isn't known.
		s.set(min(wasLo, lo), max(wasHi, hi), at)
		s.doubt = settled
	} else {
		s.set(lo, hi, at)
	}
	c.contradict(s, jump{lo - wasHi, hi - wasLo, old, r.Received})
}

// set bounds a server by one answer.
func (s *server) set(lo, hi int64, at time.Duration) {
	s.lo, s.hi, s.at, s.loSince, s.hiSince, s.doubt = lo, hi, at, at, at, certain
}

// narrow intersects the known bound of a server with another answer. A bound from an answer older
// than Stale is dropped, because a step that is shorter than the round trips since then contradicts
// no answer.
func (s *server) narrow(wasLo, wasHi, lo, hi int64, at time.Duration) {
	if lo >= wasLo || at-s.loSince > Stale {
		wasLo, s.loSince = lo, at
	}
	if hi <= wasHi || at-s.hiSince > Stale {
		wasHi, s.hiSince = hi, at
	}
	s.lo, s.hi, s.at, s.doubt = wasLo, wasHi, at, certain
}

// Fail notes, at a local reading, that a server gave no answer.
func (c *Clocks) Fail(name string, at time.Duration) {
	if s := c.find(name); s != nil {
		s.failed, s.failedAt = true, at
		for _, other := range c.servers {
			c.follow(other)
		}
	}
}

// Failed reports whether a server gave no answer when it was asked last.
func (c *Clocks) Failed(name string) bool {
	s := c.find(name)
	return s != nil && s.failed
}

// Widened is how much the bound of a server has widened each way, at a local reading, since it
// answered; 0 if it never did.
func (c *Clocks) Widened(name string, at time.Duration) time.Duration {
	s := c.find(name)
	if s == nil || !s.known {
		return 0
	}
	return time.Duration(drift(at - s.at))
}

// Need says what a server needs at a local reading.
func (c *Clocks) Need(name string, at time.Duration) Need {
	s := c.find(name)
	switch {
	case s == nil || s.known && s.doubt == certain && at-s.at < Fresh:
		return Nothing
	case s.failed && at-s.failedAt > Stale:
		return Trying
	case s.failed || s.known && s.doubt == certain && at-s.at < Stale:
		return Asking
	default:
		return Waiting
	}
}

// Apart is how far at most the clock of any server is from the clock of one of them, at a local
// reading. It isn't known (ok is false) before that one has answered, and after a contradiction
// until it has answered anew, and each other has answered or failed.
func (c *Clocks) Apart(from string, at time.Duration) (_ time.Duration, ok bool) {
	s := c.find(from)
	if s == nil || !s.known || s.doubt != certain {
		return 0, false
	}
	lo, hi := c.now(s, at)
	apart, assumed := int64(0), time.Duration(0)
	for _, other := range c.servers {
		switch {
		case other == s:
		case !other.known:
			// It is within Assumed of some of the others.
			assumed = c.Assumed
		case other.doubt != certain && !other.failed:
			return 0, false
		default:
			otherLo, otherHi := c.now(other, at)
			apart = max(apart, otherHi-lo, hi-otherLo)
		}
	}
	return time.Duration(apart) + assumed, true
}

// drift is how far two clocks may have come apart in d.
func drift(d time.Duration) int64 { return int64(d.Abs()/perDrift) + 1 }

// Stray is a clock that is certainly further off than what is assumed.
type Stray struct {
	Server string
	// Ahead is how far it is ahead of the clock of Of; negative if it is behind.
	Ahead time.Duration
	Of    string
}

// Strays are the clocks that are off by more than Assumed, at a local reading. They are compared
// with the one in the middle, so that the odd one out is named: of two clocks, either may be
// wrong.
func (c *Clocks) Strays(at time.Duration) []Stray {
	var known []*server
	middle := func(s *server) int64 { return s.lo + (s.hi-s.lo)/2 }
	for _, s := range c.servers {
		if s.known {
			known = append(known, s)
		}
	}
	if len(known) < 2 {
		return nil
	}
	slices.SortFunc(known, func(a, b *server) int {
		return cmp.Or(cmp.Compare(middle(a), middle(b)), cmp.Compare(a.name, b.name))
	})
	of := known[(len(known)-1)/2]
	lo, hi := c.now(of, at)
	var strays []Stray
	for _, s := range known {
		otherLo, otherHi := c.now(s, at)
		if s != of && max(otherLo-hi, lo-otherHi) > int64(c.Assumed) {
			strays = append(strays, Stray{s.name, time.Duration(middle(s) - middle(of)), of.name})
		}
	}
	return strays
}
