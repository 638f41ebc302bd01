package sim

import (
	"sort"
	"time"
)

// outage is a stretch of true time, from the beginning of the run, in which something is
// wrong.
type outage struct {
	from, to time.Duration
	kind     Fault
}

// outages are in order, and no two overlap.
type outages []outage

// drawOutages draws the outages of a whole run. The average time between two of them is
// every. The given function draws the kind and the length of each.
func drawOutages(seed int64, t topic, of int64, every, end time.Duration, draw func(*rand) (Fault, time.Duration)) outages {
	if every <= 0 {
		return nil
	}
	var out outages
	r := newRand(seed, t, of, 0)
	for at := r.upTo(2 * every); at < end; at += r.span(every/10, 2*every) {
		kind, long := draw(&r)
		out = append(out, outage{at, at + max(long, 1), kind})
		at += max(long, 1)
	}
	return out
}

// after is the index of the first outage that ends after a time.
func (s outages) after(at time.Duration) int {
	return sort.Search(len(s), func(i int) bool { return s[i].to > at })
}

// at is the outage at a time.
func (s outages) at(at time.Duration) (outage, bool) {
	if i := s.after(at); i < len(s) && s[i].from <= at {
		return s[i], true
	}
	return outage{}, false
}

// resume is the first time, from a given one on, that is in no outage.
func (s outages) resume(at time.Duration) time.Duration {
	if x, ok := s.at(at); ok {
		return x.to
	}
	return at
}

// begun counts the outages that have begun by a time.
func (s outages) begun(at time.Duration) int64 {
	return int64(sort.Search(len(s), func(i int) bool { return s[i].from > at }))
}

// justEnded reports whether an outage ended shortly before a time.
func (s outages) justEnded(at, within time.Duration) bool {
	i := s.after(at)
	return i > 0 && at-s[i-1].to <= within
}
