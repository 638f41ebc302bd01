package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Entry is how a worker takes part in the slot in which it starts.
type Entry int

// The entries.
const (
	// FromNext: it doesn't, and contends for the next slot first.
	FromNext Entry = iota
	// AsMember: it joins a lease of its group, and claims nothing before the next slot.
	AsMember
	// AtOnce: it claims the rest of the slot, if nobody has it.
	AtOnce
)

// turn follows the turn schedule. A step is, if the lead allows it, longer than a claim
// takes to become visible, so that the next worker finds the slot taken; and the schedule
// ends before the boundary, so that the slot has a holder when it begins.
func turn(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
	return l.Offset(p, tie, held, draw)
}

// spread is the difference between two workers' clocks, and between the moment at which a claim
// was to land and the moment at which others see it.
func spread(uncertainty, latency time.Duration) time.Duration { return uncertainty + latency }

// entry claims what is left of a slot only where a worker's start must not cost a slot: where a lease
// passes to others within a slot, or goes on, or work is to be done once. Who is alone with a plain slot
// has it from its boundary. A worker that joins a group takes nothing from anybody, and would be missing
// from the group until the next boundary.
func entry(join bool, group string) Entry {
	switch {
	case join:
		return AtOnce
	case group != "":
		return AsMember
	default:
		return FromNext
	}
}

// abandon goes on after the boundary: a worker that could not reach the store before
// claims the rest of the slot, so that an outage costs hardly more than it lasts. The
// first claim for the next slot ends that, because no window starts before the head's
// ends. So when claims for the next slot open, every worker turns to it, and does not
// stand in the way.
func abandon(_ slots.Slot, opens time.Time) time.Time { return opens }

// standBy looks once at a slot that another worker has, and then not before claims for
// the next one open: losing costs no more. Only where a standby is to take over from a
// holder that dies, the end of each of its windows is looked at.
func standBy(end, opens time.Time, _ timeline.Interval, failover time.Duration) time.Time {
	if failover == 0 || !end.Before(opens) {
		return time.Time{}
	}
	return end
}

// wait rounds up to 1 ms: a zero wait would spin.
func wait(d time.Duration) time.Duration { return max(d, time.Millisecond) }
