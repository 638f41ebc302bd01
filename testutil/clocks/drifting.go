package clocks

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/benbjohnson/clock"
)

// million parts are the whole of what base measures.
const million = 1_000_000

// Drifting returns a clock that starts with the time of base and then runs too fast by
// ppm millionths, or too slow if ppm is negative. This applies to Now, Since, boot time
// (if base has it) and the lengths of timers. Good quartz drifts by 20 ppm; a worker
// allows for up to 1000. It panics unless -1,000,000 < ppm <= 1,000,000,000, because a
// clock doesn't stop or run backwards.
func Drifting(base clock.Clock, ppm int) clock.Clock {
	if ppm <= -million || ppm > 1000*million {
		panic(fmt.Sprintf("clocks: drift of %d ppm: must be more than -1000000 and at most 1000000000", ppm))
	}
	d := drifting{Clock: base, origin: base.Now(), rate: uint64(million + ppm)}
	now := func() time.Time { return d.origin.Add(d.shown(base.Since(d.origin))) }
	return withBoottime(skewed{d, now}, base, d.shown)
}

// drifting is a clock whose timers drift from those of the clock that it wraps.
type drifting struct {
	clock.Clock
	origin time.Time // when both showed the same
	rate   uint64    // what the clock shows of a second, in microseconds
}

// shown converts a length of time of base to this clock, rounded down.
func (d drifting) shown(real time.Duration) time.Duration {
	if real < 0 {
		return -scaled(-real, d.rate, million, 0)
	}
	return scaled(real, d.rate, million, 0)
}

// wait is the time by base until this clock shows that dt has passed. It is rounded up,
// because code that waits until a time must not wake up before it.
func (d drifting) wait(dt time.Duration) time.Duration {
	if dt <= 0 {
		return dt
	}
	now := d.Clock.Since(d.origin)
	shown := d.shown(now)
	if shown > math.MaxInt64-dt {
		return math.MaxInt64
	}
	return scaled(shown+dt, million, d.rate, d.rate-1) - now
}

// period is the length between ticks. It has no known beginning.
func (d drifting) period(dt time.Duration) time.Duration {
	if dt <= 0 {
		return dt
	}
	return scaled(dt, million, d.rate, d.rate-1)
}

// scaled is (t*by + round) / of for t >= 0, at most the longest duration.
func scaled(t time.Duration, by, of, round uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(t), by)
	lo, carry := bits.Add64(lo, round, 0)
	hi += carry
	if hi >= of {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, of)
	return time.Duration(min(q, math.MaxInt64))
}

func (d drifting) After(dt time.Duration) <-chan time.Time { return d.Clock.After(d.wait(dt)) }

func (d drifting) AfterFunc(dt time.Duration, f func()) *clock.Timer {
	return d.Clock.AfterFunc(d.wait(dt), f)
}

func (d drifting) Sleep(dt time.Duration) { d.Clock.Sleep(d.wait(dt)) }

func (d drifting) Tick(dt time.Duration) <-chan time.Time { return d.Clock.Tick(d.period(dt)) }

func (d drifting) Ticker(dt time.Duration) *clock.Ticker { return d.Clock.Ticker(d.period(dt)) }

func (d drifting) Timer(dt time.Duration) *clock.Timer { return d.Clock.Timer(d.wait(dt)) }
