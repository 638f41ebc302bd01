package workerlease

import (
	"time"

	"github.com/benbjohnson/clock"
)

// bootClock is an optional ability of an injected clock: a reading that goes on
// while the machine is suspended, from any fixed origin.
type bootClock interface {
	Boottime() time.Duration
}

// recheckHeld is how often a held lease is looked at again when the clock knows
// boot time: Go's timers stand still while the machine is suspended, boot time
// doesn't. recheckIdle is the same for a worker that holds nothing.
const (
	recheckHeld = time.Second
	recheckIdle = 30 * time.Second
)

// localClock reads the local clock that the time line is measured against: boot
// time if the injected clock has it, else the time since now.
func localClock(c clock.Clock) (read func() time.Duration, boot bool) {
	if b, ok := c.(bootClock); ok {
		return b.Boottime, true
	}
	origin := c.Now()
	return func() time.Duration { return c.Since(origin) }, false
}
