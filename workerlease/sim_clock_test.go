package workerlease_test

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"github.com/benbjohnson/clock"
)

// draw is a number in [0, 1) that depends on nothing but its arguments: no order
// of goroutines can change what a seed means.
func draw(seed int64, what string, n ...int64) float64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, seed)
	_, _ = h.Write([]byte(what))
	_ = binary.Write(h, binary.LittleEndian, n)
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// drawTime is a time between two bounds, evenly on a logarithmic scale.
func drawTime(u float64, least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), u))
}

// stall is a stretch of true time in which a process does not run. During a
// suspend its timers stand still, too.
type stall struct {
	from, to time.Duration
	suspend  bool
}

// stalls of one process, in order, apart from each other.
type stalls []stall

// drawStalls draws the stalls of a process that lives until end.
func drawStalls(seed int64, worker, life int64, every time.Duration, end time.Duration) stalls {
	var out stalls
	if every <= 0 {
		return nil
	}
	at := time.Duration(0)
	for i := int64(0); ; i++ {
		at += drawTime(draw(seed, "stall gap", worker, life, i), every/10, 4*every)
		if at > end {
			return out
		}
		s := stall{from: at, suspend: draw(seed, "stall kind", worker, life, i) < 0.3}
		s.to = at + drawTime(draw(seed, "stall length", worker, life, i), time.Millisecond, 10*time.Minute)
		out = append(out, s)
		at = s.to
	}
}

// resume is when a process that would act at a time really can.
func (s stalls) resume(at time.Duration) time.Duration {
	for _, x := range s {
		if x.from <= at && at < x.to {
			return x.to
		}
	}
	return at
}

// pausedAt is when a process that ends something at a time did its last work:
// the beginning of the stall that it just came out of, if it did.
func (s stalls) pausedAt(at time.Duration) time.Duration {
	for _, x := range s {
		if x.from <= at && at <= x.to {
			return x.from
		}
	}
	return at
}

// fire is when a timer of d that was set at a time really fires.
func (s stalls) fire(at, d time.Duration) time.Duration {
	due := at + d
	for _, x := range s {
		if x.suspend && x.from >= at && x.from < due {
			due += x.to - x.from
		}
	}
	return s.resume(due)
}

// simClock is the clock of one simulated process: it drifts, its time of day is
// wrong, and it stands still when the process does.
type simClock struct {
	clock.Clock               // the bubble's, which is true time
	origin      time.Time     // of the simulation
	rate        float64       // how fast it runs
	boot        time.Duration // its reading at the origin
	wall        time.Duration // how wrong its time of day is
	stalls      stalls
}

func (c *simClock) elapsed() time.Duration { return c.Clock.Since(c.origin) }

// Boottime drifts.
func (c *simClock) Boottime() time.Duration {
	return c.boot + time.Duration(float64(c.elapsed())*c.rate)
}

func (c *simClock) Now() time.Time { return c.Clock.Now().Add(c.wall) }

// wait is the true length of a wait of d by this clock.
func (c *simClock) wait(d time.Duration) time.Duration {
	at := c.elapsed()
	return c.stalls.fire(at, time.Duration(float64(d)/c.rate)) - at
}

func (c *simClock) Timer(d time.Duration) *clock.Timer { return c.Clock.Timer(c.wait(d)) }

func (c *simClock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.Clock.AfterFunc(c.wait(d), f)
}

func (c *simClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.Clock.WithTimeout(ctx, c.wait(d))
}

// simRand makes the engine's randomness a function of the time.
type simRand struct {
	seed         int64
	worker, life int64
	clock        *simClock
}

func (r simRand) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(256 * draw(r.seed, "rand", r.worker, r.life, int64(r.clock.elapsed()), int64(i)))
	}
	return len(p), nil
}
