package sim

import (
	"math"
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
