package supervise

import (
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// maxGrace bounds the default grace. A command has at least 98 % of a lease of 5 min.
const maxGrace = 5 * time.Second

// pacing decides when a command must end.
type pacing struct {
	workerlease.Timing

	grace time.Duration // 0: by the length of the lease
}

// extends reports whether leases are extended at all.
func (p pacing) extends() bool { return p.Options.Continuous || p.Options.FailoverWithin > 0 }

// graceOf is how long the command has between SIGTERM and SIGKILL, if that much is
// left of the lease. By default it is a twentieth of the rest of the lease, or, if leases
// are extended, of FailoverWithin or of the slot.
func (p pacing) graceOf(l workerlease.Lease, left time.Duration) time.Duration {
	switch {
	case p.grace > 0:
		return p.grace
	case p.Options.FailoverWithin > 0:
		return min(maxGrace, p.Options.FailoverWithin/20)
	case p.Options.Continuous:
		return min(maxGrace, l.Slot.Length()/20)
	}
	return min(maxGrace, left/20)
}

// longestGrace bounds graceOf for all leases.
func (p pacing) longestGrace() time.Duration { return max(p.grace, maxGrace) }

// noticeOf is how long before the end of the lease, as it is known now, SIGTERM
// comes, for a command with a grace. A lease that may yet be extended has three
// quarters of the time for that first: a healthy command isn't disturbed.
func (p pacing) noticeOf(l workerlease.Lease, left, grace time.Duration) time.Duration {
	if due := p.ExtendsBefore(l.Slot, l.Expiry); due > 0 {
		return min(grace, due/4)
	}
	if p.grace == 0 {
		return min(grace, left/4)
	}
	return grace
}

// killTime is how long before the last safe moment the guard begins to kill: it, or
// its backup, has to find and reap every descendant, and that takes tens of milliseconds on
// a busy machine.
func killTime(left time.Duration) time.Duration { return min(2*guard.BackUpAfter, left/50) }
