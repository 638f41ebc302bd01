//go:build unix && !aix && !linux

package guard

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Boottime returns the time of CLOCK_MONOTONIC, the same for every process on
// the machine. It goes on while macOS sleeps; on other systems it may not.
func Boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(monotonic, &t); err != nil {
		panic(fmt.Sprintf("read CLOCK_MONOTONIC: %v", err))
	}
	return time.Duration(t.Nano())
}

// recheck is how often an alarm looks at the clock, since Go's timers stand
// still while the machine sleeps.
const recheck = 100 * time.Millisecond

// alarm goes off at an instant of Boottime.
type alarm struct {
	// C gets a value when the instant set last has come, and perhaps once for
	// an earlier one: receivers look at the clock.
	C     <-chan struct{}
	c     chan struct{}
	mu    sync.Mutex
	at    time.Duration
	timer *time.Timer
	done  bool
}

func newAlarm() (*alarm, error) {
	c := make(chan struct{}, 1)
	return &alarm{C: c, c: c}, nil
}

// set replaces the instant. One that has passed goes off at once.
func (a *alarm) set(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = at
	a.arm()
}

// arm starts the timer for the next look. The caller holds mu.
func (a *alarm) arm() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.done {
		return
	}
	a.timer = time.AfterFunc(min(max(a.at-Boottime(), 0), recheck), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.at > Boottime() {
			a.arm()
			return
		}
		select {
		case a.c <- struct{}{}:
		default:
		}
	})
}

// stop frees the timer.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.arm()
}
