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
// or, if it never answered, of those that did answer.
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
	// Asking: the server should be asked, but what is known of it will do, or it failed to
	// answer when it was asked last.
	Asking
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
}

// server is one of them. Its clock minus the local clock was within [lo, hi] nanoseconds at the
// local reading at, if it is known.
type server struct {
	name   string
	known  bool
	failed bool // when it was asked last
	lo, hi int64
	at     time.Duration
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
// known, so all that was measured before the server was asked is forgotten, of the others, too.
func (c *Clocks) Read(name string, r Reading) {
	s := c.find(name)
	if s == nil {
		return // It was removed meanwhile.
	}
	trip := r.Received - r.Sent
	offset := r.Time.UnixNano() - int64(r.Received)
	lo, hi := offset, offset+int64(r.Granularity+trip)+drift(trip)
	s.failed = false
	if !s.known {
		s.known, s.lo, s.hi, s.at = true, lo, hi, r.Received
		return
	}
	at := max(s.at, r.Received)
	old, late := drift(at-s.at), drift(at-r.Received)
	if bothLo, bothHi := max(s.lo-old, lo-late), min(s.hi+old, hi+late); bothLo <= bothHi {
		s.lo, s.hi, s.at = bothLo, bothHi, at
		return
	}
	s.lo, s.hi, s.at = lo, hi, r.Received
	for _, other := range c.servers {
		if other != s && other.at < r.Sent {
			other.known = false
		}
	}
}

// Fail notes that a server gave no answer.
func (c *Clocks) Fail(name string) {
	if s := c.find(name); s != nil {
		s.failed = true
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
	case s == nil || s.known && at-s.at < Fresh:
		return Nothing
	case s.failed || s.known && at-s.at < Stale:
		return Asking
	default:
		return Waiting
	}
}

// Apart is how far at most the clock of any server is from the clock of one of them, at a local
// reading. It isn't known (ok is false) before that one has answered, and after a contradiction.
func (c *Clocks) Apart(from string, at time.Duration) (_ time.Duration, ok bool) {
	s := c.find(from)
	if s == nil || !s.known {
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
		default:
			otherLo, otherHi := c.now(other, at)
			apart = max(apart, otherHi-lo, hi-otherLo)
		}
	}
	return time.Duration(apart) + assumed, true
}

// now is the bound of a server that is known, as of a local reading. A server that can't be
// asked for long is kept where it was seen last, give or take what is assumed: drift alone would
// put it days off in a month. But it may have been set anew while nobody could look.
func (c *Clocks) now(s *server, at time.Duration) (lo, hi int64) {
	widened := drift(at - s.at)
	if s.failed && at-s.at > Stale {
		widened = max(int64(c.Assumed), drift(Stale))
	}
	return s.lo - widened, s.hi + widened
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
