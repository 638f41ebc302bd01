package faultstore

import (
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// Rates are the probabilities, from 0 to 1, with which Random draws each fault. One call
// meets at most one of the faults that have a rate. If the rates of an operation sum up
// to more than 1, the later ones are cut off.
type Rates struct {
	// Latency bounds Before and After of each call: both are drawn evenly below it.
	Latency time.Duration
	// Slow calls take up to SlowBy longer, before and after. SlowBy defaults to
	// 10 s.
	Slow   float64
	SlowBy time.Duration

	// Failure and LostReply are errors before and after the effect.
	Failure, LostReply float64
	// BlackHole withholds the reply, evenly with and without the effect.
	BlackHole float64
	// Throttled calls are asked to retry after up to RetryAfter, default 1 s.
	Throttled  float64
	RetryAfter time.Duration

	// OwnConflict strikes appends only.
	OwnConflict float64
	// Late appends land after 1 ms to LateBy, default 24 h: the logarithm of the
	// delay is drawn evenly. Half of them answer with an error, half not at all.
	Late   float64
	LateBy time.Duration

	// Stale gets and tails lack one to HideNewest of the newest records, default 1.
	Stale      float64
	HideNewest int

	// Stamp gives a now or a tail the stamp of another server, whose clock is wrong by
	// up to StampBy in either direction. StampBy defaults to 1 min.
	Stamp   float64
	StampBy time.Duration
}

// Random is a plan that draws faults. Each draw is a hash of the seed and the call's
// Caller, Op, WorkerType and N, so the same calls meet the same faults, in whatever
// order goroutines make them. Callers need contexts that end, or a black hole keeps them
// forever.
func Random(seed uint64, r Rates) func(Call) Fault {
	r.SlowBy = or(r.SlowBy, 10*time.Second)
	r.RetryAfter = or(r.RetryAfter, time.Second)
	r.LateBy = or(r.LateBy, 24*time.Hour)
	r.StampBy = or(r.StampBy, time.Minute)
	r.HideNewest = max(r.HideNewest, 1)
	return func(c Call) Fault {
		d := draws{seed: seed, call: c}
		f := r.draw(d)
		f.Before += d.below("before", r.Latency)
		f.After += d.below("after", r.Latency)
		return f
	}
}

func or(d, standard time.Duration) time.Duration {
	if d <= 0 {
		return standard
	}
	return d
}

// draw picks at most one fault.
func (r Rates) draw(d draws) Fault {
	left := d.unit("fault")
	hit := func(rate float64, ops ...Op) bool {
		if len(ops) > 0 && !slices.Contains(ops, d.call.Op) {
			return false
		}
		left -= max(rate, 0)
		return left < 0
	}
	half := d.unit("half") < 0.5
	switch {
	case hit(r.Slow):
		return Fault{Before: d.below("slow before", r.SlowBy), After: d.below("slow after", r.SlowBy)}
	case hit(r.Failure):
		return Failure()
	case hit(r.LostReply):
		return LostReply()
	case hit(r.BlackHole):
		if half {
			return BlackHole(Applied)
		}
		return BlackHole(Dropped)
	case hit(r.Throttled):
		return Throttled(d.below("retry after", r.RetryAfter))
	case hit(r.OwnConflict, OpAppend):
		return OwnConflict()
	case hit(r.Late, OpAppend):
		f := LandsLate(d.scaled("late by", time.Millisecond, r.LateBy))
		f.Block = half
		return f
	case hit(r.Stale, OpGet, OpTail):
		return StaleRead(1 + int(d.unit("hide newest")*float64(r.HideNewest)))
	case hit(r.Stamp, OpNow, OpTail):
		return OtherServer("other", d.below("stamp", 2*r.StampBy)-r.StampBy)
	default:
		return Fault{}
	}
}

// draws are the random numbers of one call, by name.
type draws struct {
	seed uint64
	call Call
}

// unit draws from [0, 1).
func (d draws) unit(name string) float64 {
	h := fnv.New64a()
	number := func(n uint64) {
		var b [8]byte
		for i := range b {
			b[i] = byte(n >> (8 * i))
		}
		_, _ = h.Write(b[:]) // It never fails.
	}
	number(d.seed)
	for _, s := range []string{d.call.Caller, string(d.call.Op), d.call.WorkerType, name} {
		number(uint64(len(s)))
		_, _ = h.Write([]byte(s))
	}
	number(uint64(d.call.N))
	// FNV alone leaves neighbours alike; this is the finalizer of SplitMix64.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// below draws evenly from [0, d), to the nanosecond.
func (d draws) below(name string, most time.Duration) time.Duration {
	return time.Duration(d.unit(name) * float64(max(most, 0)))
}

// scaled draws from [least, most), the logarithm evenly.
func (d draws) scaled(name string, least, most time.Duration) time.Duration {
	if most <= least {
		return most
	}
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), d.unit(name)))
}
