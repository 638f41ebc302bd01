package workerlease

import (
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"
)

// systemClock is the real clock, with boot time.
type systemClock struct{ clock.Clock }

// NewSystemClock returns the clock that is used when none is injected: the real
// one, which on Linux also tells boot time (CLOCK_BOOTTIME), so that a suspended
// machine is noticed.
func NewSystemClock() clock.Clock { return systemClock{clock.New()} }

// Boottime reads CLOCK_BOOTTIME.
func (systemClock) Boottime() time.Duration {
	var ts unix.Timespec
	// It fails for a bad address or an unknown clock only: kernels know this one
	// since 2.6.39, and Go needs 3.2.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("workerlease: read CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
