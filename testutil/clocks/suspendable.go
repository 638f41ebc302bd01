package clocks

import (
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Suspendable is the clock of a machine that can be suspended. While it is suspended,
// timers and measured durations stand still, but boot time continues. It is safe for
// concurrent use.
type Suspendable struct {
	clock.Clock
	read  func() time.Duration
	slept atomic.Int64
}

var _ clock.Clock = (*Suspendable)(nil)

// NewSuspendable returns the clock of a machine that hasn't been suspended yet. Timers,
// durations and the time of day are those of base.
func NewSuspendable(base clock.Clock) *Suspendable {
	s := &Suspendable{Clock: base}
	if b, ok := base.(bootClock); ok {
		s.read = b.Boottime
	} else {
		origin := base.Now()
		s.read = func() time.Duration { return base.Since(origin) }
	}
	return s
}

// Suspend suspends the machine for d and resumes it: boot time jumps by d, at once by
// base, and the timers don't notice. Now doesn't jump either, because programs that
// measure durations by it must not notice. A negative d counts as 0.
func (s *Suspendable) Suspend(d time.Duration) { s.slept.Add(int64(max(d, 0))) }

// Boottime continues during a suspend.
func (s *Suspendable) Boottime() time.Duration { return s.read() + s.suspended() }

func (s *Suspendable) suspended() time.Duration { return time.Duration(s.slept.Load()) }

// Outside returns the clock of the rest of the world, where time continued during
// suspends. Use it for the store; otherwise the store would seem suspended, too.
func (s *Suspendable) Outside() clock.Clock {
	return skewed{s.Clock, func() time.Time { return s.Now().Add(s.suspended()) }}
}
