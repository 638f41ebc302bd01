package clocks

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"
)

// Skewed returns a clock whose time of day is wrong by offset, which may be negative.
// Its rate is right: durations and timers are those of base, and so is boot time, if
// base has it.
func Skewed(base clock.Clock, offset time.Duration) clock.Clock {
	return withBoottime(skewed{base, func() time.Time { return base.Now().Add(offset) }}, base, nil)
}

// skewed is a clock with another time of day.
type skewed struct {
	clock.Clock
	now func() time.Time
}

func (s skewed) Now() time.Time { return s.now() }

func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func (s skewed) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }

func (s skewed) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return withDeadline(parent, s, d)
}

func (s skewed) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withDeadline(parent, s, s.Now().Add(d))
}

// bootClock is the optional ability of a clock to return boot time.
type bootClock interface{ Boottime() time.Duration }

// booted is a clock that has it.
type booted struct {
	clock.Clock
	boottime func() time.Duration
}

func (b booted) Boottime() time.Duration { return b.boottime() }

// withBoottime gives c the boot time of base, if base has it. scale (may be nil) converts
// a length of time to c.
func withBoottime(c, base clock.Clock, scale func(time.Duration) time.Duration) clock.Clock {
	b, ok := base.(bootClock)
	switch {
	case !ok:
		return c
	case scale == nil:
		return booted{c, b.Boottime}
	default:
		return booted{c, func() time.Duration { return scale(b.Boottime()) }}
	}
}
