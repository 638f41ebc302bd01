package timeline

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// Outcome is what a sample did to the line.
type Outcome int

// The outcomes.
const (
	// Rejected: the stamp is not a plausible time, and was ignored.
	Rejected Outcome = iota
	// First: nothing was known before.
	First
	// Narrowed: the sample agrees with what was known.
	Narrowed
	// ServerChanged: another server answered. Its bound is kept beside the old.
	ServerChanged
	// Jumped: the sample contradicts what was known.
	Jumped
)

// String names the outcome.
func (o Outcome) String() string {
	return [...]string{"rejected", "first", "narrowed", "server changed", "jumped"}[o]
}

// maxPast is how many bounds from before a jump are kept apart. More are merged:
// that only widens what unsettled readers get.
const maxPast = 4

// Line is what is known of store time. The zero Line knows nothing. It is not
// safe for concurrent use.
type Line struct {
	known  bool
	now    bound
	server string
	fresh  time.Duration // local reading of the newest sample
	epoch  int
	jumps  int
	past   []past
}

// bound says that store time minus the local clock was within [lo, hi]
// nanoseconds at the local reading at.
type bound struct {
	lo, hi int64
	at     time.Duration
}

// past is a bound that was in force before an epoch began.
type past struct {
	bound
	before int
}

// drift is how far the clocks may have come apart in d.
func drift(d time.Duration) int64 { return int64(d.Abs()/perDrift) + 1 }

// shifted returns the bound as of another local reading.
func (b bound) shifted(at time.Duration) bound {
	if at == b.at {
		return b
	}
	w := drift(at - b.at)
	return bound{b.lo - w, b.hi + w, at}
}

func hull(a, b bound) bound {
	at := max(a.at, b.at)
	a, b = a.shifted(at), b.shifted(at)
	return bound{min(a.lo, b.lo), max(a.hi, b.hi), at}
}

// plausible bounds stamps to times whose nanoseconds can be counted, and what
// widens them to what can be added to that.
func plausible(s store.Stamp, trip time.Duration) bool {
	for _, d := range []time.Duration{s.Granularity, s.MaxAge, s.Skew, trip} {
		if d < 0 || d > longest {
			return false
		}
	}
	return s.Time.Year() >= 1970 && s.Time.Year() < 2200
}

// longest is more than any part of a sample that is of use.
const longest = 365 * 24 * time.Hour

// Add takes in a stamp that was asked for at the local reading sent and arrived
// at received.
func (l *Line) Add(s store.Stamp, sent, received time.Duration) Outcome {
	trip := received - sent
	if !plausible(s, trip) {
		return Rejected
	}
	at := s.Time.UnixNano() - int64(received)
	b := bound{
		lo: at - int64(s.Skew),
		hi: at + int64(s.Granularity+s.MaxAge+trip+s.Skew) + drift(trip),
		at: received,
	}
	if !l.known {
		l.known, l.now, l.server, l.fresh = true, b, s.Server, received
		return First
	}
	ref := max(b.at, l.now.at)
	old, b := l.now.shifted(ref), b.shifted(ref)
	l.fresh = max(l.fresh, received)
	both := bound{max(old.lo, b.lo), min(old.hi, b.hi), ref}
	switch {
	case both.lo > both.hi:
		l.jumps++
		l.begin(old, b, s.Server)
		return Jumped
	case s.Server != l.server:
		l.begin(old, b, s.Server)
		return ServerChanged
	}
	l.now = both
	return Narrowed
}

// begin starts a new epoch.
func (l *Line) begin(old, b bound, server string) {
	l.epoch++
	l.past = append(l.past, past{old, l.epoch})
	if len(l.past) > maxPast {
		l.past[1] = past{hull(l.past[0].bound, l.past[1].bound), l.past[1].before}
		l.past = append([]past(nil), l.past[1:]...)
	}
	l.now, l.server = b, server
}

// At returns an interval that contains store time at a local reading, for a
// reader that has settled all epochs up to settled. It is the zero Interval
// while nothing is known.
func (l *Line) At(local time.Duration, settled int) Interval {
	if !l.known {
		return Interval{}
	}
	b := l.now.shifted(local)
	for _, p := range l.past {
		if p.before > settled {
			q := p.shifted(local)
			b.lo, b.hi = min(b.lo, q.lo), max(b.hi, q.hi)
		}
	}
	return Interval{
		Earliest: time.Unix(0, int64(local)+b.lo).UTC(),
		Latest:   time.Unix(0, int64(local)+b.hi).UTC(),
	}
}

// Age is how long ago, by the local clock, the newest sample arrived. It means
// nothing while nothing is known.
func (l *Line) Age(local time.Duration) time.Duration { return max(local-l.fresh, 0) }

// remember is how long a reader that begins anew minds what came before a jump.
const remember = 24 * time.Hour

// Settled is the epoch up to which a reader that begins at a local reading has
// settled: it minds the jumps of late, although it has read nothing before them.
func (l *Line) Settled(local time.Duration) int {
	for _, p := range l.past {
		if local-p.at < remember {
			return p.before - 1
		}
	}
	return l.epoch
}

// Epoch counts the jumps and changes of server.
func (l *Line) Epoch() int { return l.epoch }

// Jumps counts the contradictions alone.
func (l *Line) Jumps() int { return l.jumps }
