package sdnotify

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock by which the service manager knows which reload is meant.
func monotonic() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // It is always there.
	return time.Duration(at.Nano())
}
