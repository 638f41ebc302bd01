package guard

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// prepare makes this process the one that orphaned descendants fall to, and reports what it lacks to
// guard a command: system calls that a sandbox denies, or its own /proc. The program asks before it
// leases, and the guard before it starts the command.
func prepare() error {
	for _, need := range []struct {
		call string
		try  func() error // changes nothing else
	}{
		{"prctl", func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }},
		{"waitid", func() error {
			return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		}},
		{"wait4", func() error {
			const unknown = 0x10 // The kernel refuses this option, so that nothing is reaped.
			_, err := unix.Wait4(-1, nil, unknown, nil)
			return err
		}},
		{"kill", func() error { return unix.Kill(os.Getpid(), 0) }},
		{"timerfd_create or timerfd_settime", func() error {
			a, err := newAlarm()
			if err == nil {
				a.stop()
			}
			return err
		}},
	} {
		if err := need.try(); errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOSYS) {
			// Not wrapped: it isn't about the command.
			return fmt.Errorf("no command can be guarded: the system call %s is denied (%s): allow it in the sandbox, such as the container's seccomp profile", need.call, errnoOf(err).Error())
		}
	}
	self, err := os.Readlink("/proc/self")
	if _, ok := stat(os.Getpid()); err != nil || self == strconv.Itoa(os.Getpid()) && !ok {
		return errors.New("no command can be guarded: /proc/self/stat can't be read; /proc must be mounted")
	}
	if self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("no command can be guarded: /proc/self is %s, and this process is %d: mount a /proc of the own PID namespace", self, os.Getpid())
	}
	return nil
}
