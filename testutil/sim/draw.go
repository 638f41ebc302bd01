package sim

import (
	"math"
	"sort"
	"time"
)

// topic is the purpose of a draw. Draws for different topics are independent.
type topic uint64

const (
	forMix topic = iota + 1
	forHost
	forStalls
	forCuts
	forOutages
	forFailovers
	forSteps
	forJumps
	forMember
	forWall
	forLife
	forCall
	forTimer
	forRand
	forWork
	forPlant
	forWrong
	forFirst
	forClock
	forElections
	forDistance
	forHints
	forIlls
	forRoster
	forOrders
	forLosses
	forTriggers
)

// rand is a stream of draws. It depends only on how newRand made it, so that the order in
// which goroutines run never changes a seed's meaning.
type rand uint64

// newRand begins one of the streams of a topic, identified by two numbers.
func newRand(seed int64, t topic, a, b int64) rand {
	h := scramble(uint64(seed) + 0x9e3779b97f4a7c15*uint64(t))
	h = scramble(h ^ uint64(a)*0xd1342543de82ef95)
	return rand(scramble(h ^ uint64(b)*0xaf251af3b0f025b5))
}

// scramble is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *rand) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return scramble(uint64(*r))
}

// float is even in [0, 1).
func (r *rand) float() float64 { return float64(r.next()>>11) / (1 << 53) }

func (r *rand) chance(p float64) bool { return r.float() < p }

// below is even in [0, n).
func (r *rand) below(n int) int { return int(r.next() % uint64(n)) }

// upTo is even in [0, d).
func (r *rand) upTo(d time.Duration) time.Duration {
	return time.Duration(r.float() * float64(d))
}

// either is even in (-d, d).
func (r *rand) either(d time.Duration) time.Duration {
	return time.Duration((2*r.float() - 1) * float64(d))
}

// sign is d or -d.
func (r *rand) sign(d time.Duration) time.Duration {
	if r.chance(0.5) {
		return -d
	}
	return d
}

// span is between two bounds, evenly on a logarithmic scale.
func (r *rand) span(least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), r.float()))
}

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
