package workerlease

import (
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/internal/bubble"
)

// systemClock is the real clock, with boot time.
type systemClock struct{ clock.Clock }

// NewSystemClock returns the clock that a Client uses by default: the real one, which on
// Linux also reads boot time (CLOCK_BOOTTIME), so that a suspend of the machine is
// noticed. When it is called inside a testing/synctest bubble, it returns the bubble's
// clock instead.
func NewSystemClock() clock.Clock {
	if bubble.Inside() {
		return clock.New()
	}
	return systemClock{clock.New()}
}

// Boottime reads CLOCK_BOOTTIME.
func (systemClock) Boottime() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// Reads says that it is the machine's clock.
func (systemClock) Reads(boottime.Machine) {}

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
