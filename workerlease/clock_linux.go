package workerlease

import (
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"
)

// systemClock is the real clock, with boot time.
type systemClock struct{ clock.Clock }

// NewSystemClock returns the clock that a Client uses by default: the real one, which on
// Linux also reads boot time (CLOCK_BOOTTIME), so that a suspend of the machine is
// noticed. When it is called inside a testing/synctest bubble, it returns the bubble's
// clock instead.
func NewSystemClock() clock.Clock {
	if inBubble() {
		return clock.New()
	}
	return systemClock{clock.New()}
}

// Boottime reads CLOCK_BOOTTIME.
func (systemClock) Boottime() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// inBubble reports that Go's time is that of a synctest bubble: it stands still there
// while this goroutine runs. The machine's monotonic clock goes on, and Go's time outside
// of a bubble comes from that very clock. It is read first before the machine's clock and
// then after it, so that it has gone on by at least as much; steps of the time of day and
// pauses of the process change nothing about that. Outside of a bubble the first look
// decides as soon as the clock has ticked, usually within 100 ns.
func inBubble() bool {
	const enough = 100 * time.Microsecond
	began := time.Now() //nolint:forbidigo // This is where the clock comes from.
	from := read(unix.CLOCK_MONOTONIC)
	for {
		now := read(unix.CLOCK_MONOTONIC)
		if time.Since(began) != 0 { //nolint:forbidigo // As above.
			return false
		}
		if now-from >= enough {
			return true
		}
	}
}

// read reads a clock of the machine.
func read(id int32) time.Duration {
	var ts unix.Timespec
	// It fails for a bad address or an unknown clock only: kernels know these since
	// 2.6.39, and Go needs 3.2.
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("workerlease: read the clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
