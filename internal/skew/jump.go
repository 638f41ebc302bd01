package skew

import "time"

// doubt is how far a contradiction has put an earlier answer in question.
type doubt int

const (
	certain doubt = iota
	// open: the bound holds whatever jumped. The server is to be asked anew.
	open
	// settled: another server showed what jumped, and the bound is as narrow as before. The server
	// is to be asked anew all the same.
	settled
)

// jump is a contradiction: by how many nanoseconds, from least to most, either the clock of one
// server went on or, if the local clock stood still, those of all did. It was noticed at a local
// reading. drifted is how much of either bound is drift since the answer before.
type jump struct {
	least, most, drifted int64
	at                   time.Duration
}

// contradict handles an answer of one server that contradicts its bound. The bounds of the others
// hold either unchanged or moved by the same amount, so each is widened to cover both. None is
// forgotten, because a server may not answer again.
func (c *Clocks) contradict(by *server, j jump) {
	c.jump = j
	for _, other := range c.servers {
		if other != by && other.known && other.at < j.at {
			other.lo, other.hi, other.doubt = other.lo+min(0, j.least), other.hi+max(0, j.most), open
		}
	}
}

// dispel handles an answer, within [lo, hi], of a server in doubt, whose bound for either explanation
// was [wasLo, wasHi]. If only one of the two explanations fits, it is taken for the others, too.
func (c *Clocks) dispel(s *server, wasLo, wasHi, lo, hi int64) {
	if s.doubt != open {
		return
	}
	down, up := min(0, c.jump.least), max(0, c.jump.most)
	beforeLo, beforeHi := wasLo-down, wasHi-up
	stayed := beforeLo <= hi && lo <= beforeHi
	moved := beforeLo+c.jump.least <= hi && lo <= beforeHi+c.jump.most
	if stayed == moved {
		return
	}
	for _, other := range c.servers {
		if other == s || other.doubt != open {
			continue
		}
		other.lo, other.hi, other.doubt = other.lo-down, other.hi-up, settled
		if moved {
			other.lo, other.hi = other.lo+c.jump.least, other.hi+c.jump.most
			if other.lost(c.jump.at) {
				// Assumed includes this drift. Otherwise daily pauses would add up.
				other.lo, other.hi = other.lo+c.jump.drifted, other.hi-c.jump.drifted
			}
		}
	}
}
