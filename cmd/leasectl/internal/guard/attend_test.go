//go:build unix && !aix

package guard

import (
	"syscall"
	"testing"
)

// On a busy machine the program kills before its guard has read the order, and the guard only sees a command that was killed.
func TestWhoWasKilledByTheProgramHasItsReason(t *testing.T) {
	killed := Status{Code: -1, Signal: syscall.SIGKILL}
	for _, says := range []Reason{Exited, Stopped, DeadlineReached, Killed} {
		killed.Reason = says
		if got := killed.killedFor(Killed); got.Reason != Killed {
			t.Errorf("a guard says %v, and the program has killed on request: %v", killed, got)
		}
	}
	for _, s := range []Status{{Code: 3, Reason: Stopped}, {Code: -1, Signal: syscall.SIGTERM, Reason: Stopped}} {
		if got := s.killedFor(Killed); got != s {
			t.Errorf("%v became %v, though the program's SIGKILL didn't end it", s, got)
		}
	}
}
