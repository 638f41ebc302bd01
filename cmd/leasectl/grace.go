package main

import (
	"math"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/workerlease"
)

// maxEarly bounds how long before its end a part of a slot is extended: a quarter
// of --failover-within, else. The source of truth is the grid.go of
// workerlease/internal/machine.
const maxEarly = 5 * time.Minute

// early is how long before its end a part of a slot is extended.
func early(failover time.Duration) time.Duration { return min(failover/4, maxEarly) }

// pacing is what tells when a command must end.
type pacing struct {
	grace    time.Duration // 0: by the length of the lease
	failover time.Duration // 0: slots have no parts
	// continuous leases go on from slot to slot; they are extended by a turn.
	continuous, noFailback bool
	lead, step             time.Duration
	priority               int
	tieBreak               priority.TieBreak
}

func pacingOf(o workerlease.Options, grace time.Duration) pacing {
	return pacing{
		grace: grace, failover: o.FailoverWithin, continuous: o.Continuous, noFailback: o.NoFailback,
		lead: o.Lead, step: o.Step, priority: o.Priority, tieBreak: o.TieBreak,
	}
}

// extends reports whether leases are extended at all.
func (p pacing) extends() bool { return p.continuous || p.failover > 0 }

// graceOf is how long the command has between SIGTERM and SIGKILL, if so much is
// left of the lease.
func (p pacing) graceOf(l workerlease.Lease, left time.Duration) time.Duration {
	const most = 10 * time.Second
	switch {
	case p.grace > 0:
		return p.grace
	case p.failover > 0:
		return min(most, p.failover/4)
	case p.continuous:
		return min(most, l.Slot.Length()/4)
	}
	return min(most, left/4)
}

// longestGrace bounds graceOf for all leases.
func (p pacing) longestGrace() time.Duration { return max(p.grace, 10*time.Second) }

// noticeOf is how long before the end of the lease, as it is known now, SIGTERM
// comes, for a command with a grace. A lease that may yet be extended is left three
// quarters of the time for that: a healthy command isn't disturbed.
func (p pacing) noticeOf(l workerlease.Lease, left, grace time.Duration) time.Duration {
	if due := p.dueOf(l); due > 0 {
		return min(grace, due/4)
	}
	if p.grace == 0 {
		return min(grace, left/4)
	}
	return grace
}

// dueOf is how long before its end the lease is extended, or zero if it can't be.
func (p pacing) dueOf(l workerlease.Lease) time.Duration {
	if l.Expiry.Before(l.Slot.End) {
		return early(p.failover)
	}
	if !p.continuous {
		return 0
	}
	lead := leadOf(l.Slot.Length(), p.lead, p.failover)
	if p.noFailback {
		return lead // and a step
	}
	// Its turn comes no later than this, however slow the store is.
	turns := priority.NewTurns(lead, p.step, math.MaxInt64)
	return lead - turns.Offset(p.priority, p.tieBreak, true, math.MaxUint64)
}

// leadOf is how long before a boundary claims open, behind a slot of a length.
func leadOf(slot, lead, failover time.Duration) time.Duration {
	lead = priority.Lead(slot, lead)
	if failover > 0 {
		lead = min(lead, failover/2)
	}
	return lead
}

// killTime is how long before the last safe moment the guard begins to kill: it
// has to find and reap every descendant, and that takes tens of milliseconds on
// a busy machine.
func killTime(left time.Duration) time.Duration { return min(100*time.Millisecond, left/50) }
