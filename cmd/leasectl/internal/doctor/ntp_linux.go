package doctor

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store"
)

// adjtimex is the kernel's, but in tests.
var adjtimex = unix.Adjtimex

// judgeNTP says whether the kernel takes this machine's clock for synchronised, which whoever keeps it says to it:
// chrony, ntpd, systemd-timesyncd and the like. It only reads.
func judgeNTP() store.Finding {
	var t unix.Timex
	state, err := adjtimex(&t)
	switch {
	case err != nil:
		return skip(checkNTP, "the kernel doesn't say: "+err.Error())
	case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
		return warn(checkNTP, "run chrony, ntpd or systemd-timesyncd on this machine, or on its host", "the kernel takes this machine's clock for not synchronised")
	}
	return ok(checkNTP, "the kernel takes this machine's clock for synchronised, to %v at most", brief(time.Duration(t.Maxerror)*time.Microsecond))
}
