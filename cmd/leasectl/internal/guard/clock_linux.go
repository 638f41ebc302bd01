package guard

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Boottime returns the time of CLOCK_BOOTTIME: since the machine started, with
// the time that it was suspended. Every process on the machine sees the same,
// apart from those in a time namespace of their own.
func Boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// The kernel has had this clock since 2.6.39, so only a sandbox can
		// refuse it. No clock means no promise.
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err))
	}
	return time.Duration(t.Nano())
}

// alarm goes off at an instant of Boottime. Unlike Go's timers it counts the
// time of a suspend.
type alarm struct {
	// C gets a value when the instant set last has come, and perhaps once for
	// an earlier one: receivers look at the clock.
	C    <-chan struct{}
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create boot-time timer: %w", err)
	}
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{}, nil); err != nil { // disarmed, as it is
		_ = unix.Close(fd)
		return nil, fmt.Errorf("set boot-time timer: %w", err)
	}
	c := make(chan struct{}, 1)
	a := &alarm{C: c, file: os.NewFile(uintptr(fd), "timerfd")}
	go func() {
		var expirations [8]byte
		for {
			if _, err := a.file.Read(expirations[:]); err != nil {
				return
			}
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set replaces the instant. One that has passed goes off at once.
func (a *alarm) set(at time.Duration) {
	// Zero would disarm the timer.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(at, 1)))}
	conn, err := a.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
	if err != nil {
		panic(fmt.Sprintf("set boot-time timer to %v: %v", at, err))
	}
}

// stop frees the timer.
func (a *alarm) stop() { _ = a.file.Close() }
