package bubble

import (
	"time"

	"golang.org/x/sys/unix"
)

// Inside reports that Go's time is that of a synctest bubble: it stands still there
// while this goroutine runs. The machine's monotonic clock goes on, and Go's time outside
// of a bubble comes from that very clock. It is read first before the machine's clock and
// then after it, so that it has gone on by at least as much; steps of the time of day and
// pauses of the process change nothing about that. Outside of a bubble the first look
// decides as soon as the clock has ticked, usually within 100 ns.
func Inside() bool {
	const enough = 100 * time.Microsecond
	began := time.Now() //nolint:forbidigo // This is where the clock comes from.
	from := monotonic()
	for {
		now := monotonic()
		if time.Since(began) != 0 { //nolint:forbidigo // As above.
			return false
		}
		if now-from >= enough {
			return true
		}
	}
}

// monotonic reads the machine's clock.
func monotonic() time.Duration {
	var ts unix.Timespec
	// It fails for a bad address or an unknown clock only.
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("bubble: read the clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
