package clocks

import (
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Suspendable is the clock of a machine that can be suspended: while it sleeps,
// its timers and the durations that its programs measure stand still, but boot
// time goes on. It is safe for concurrent use.
type Suspendable struct {
	clock.Clock
	read  func() time.Duration
	slept atomic.Int64
}

var _ clock.Clock = (*Suspendable)(nil)

// NewSuspendable returns the clock of a machine that hasn't slept yet. Timers,
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

// Suspend puts the machine to sleep for d and wakes it up at once: in no time of
// the base, boot time jumps by d, and the timers don't know. Now doesn't jump
// either, as programs that measure durations by it must not notice. A negative d
// is taken for 0.
func (s *Suspendable) Suspend(d time.Duration) { s.slept.Add(int64(max(d, 0))) }

// Boottime goes on during a suspend.
func (s *Suspendable) Boottime() time.Duration { return s.read() + s.suspended() }

func (s *Suspendable) suspended() time.Duration { return time.Duration(s.slept.Load()) }

// Outside returns the clock of the rest of the world, where time went on while
// the machine slept. Give it to the store: otherwise it would seem that the
// store slept, too.
func (s *Suspendable) Outside() clock.Clock { return skewed{s.Clock, s.suspended} }
