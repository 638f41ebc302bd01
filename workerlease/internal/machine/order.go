package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Entry is what a worker may do in the slot in which it starts.
type Entry int

// The entries.
const (
	// FromNext: nothing. It contends for the next slot first.
	FromNext Entry = iota
	// AsMember: join what its group has. It claims nothing before the next slot.
	AsMember
	// AtOnce: claim what is left, if nobody has it.
	AtOnce
)

// place goes by the turn schedule, for whoever claims. A step is, if the lead allows it, longer
// than a claim takes to be seen, so that whoever comes next finds the slot taken; and the
// turn schedule ends before the boundary, so that somebody has the slot when it begins.
func turn(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration {
	return l.Offset(p, tie, held, draw)
}

// spread is what two workers' clocks, and what one sees of the other's claim, differ by.
func spread(uncertainty, latency time.Duration) time.Duration { return uncertainty + latency }

// entry claims nothing of a slot that has begun, unless it is asked to: a part of a slot
// may be too little for what is done once in each, and nobody has a turn there, so that
// it would go to whoever starts first, whatever its priority. Who joins a group takes
// nothing from anybody, and would be missing from it until the next boundary.
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

// abandon goes on behind the boundary: whoever could not reach the store before claims
// what is left, so that an outage costs hardly more than it lasts. The first claim for
// the next slot ends that, as no window reaches back behind the head: so when claims for
// it open, everybody turns to it, and does not stand in the way.
func abandon(_ slots.Slot, opens time.Time) time.Time { return opens }

// standBy looks at a slot that another has once, and then not before claims for the next
// one open: that is all it costs to lose. Only where somebody is to take over what a
// holder leaves that dies, the end of each of its windows is looked at.
func standBy(end, opens time.Time, _ timeline.Interval, failover time.Duration) time.Time {
	if failover == 0 || !end.Before(opens) {
		return time.Time{}
	}
	return end
}

// wait rounds up: what is rounded down to nothing is waited for again and again, and
// however often, no time passes by a clock that does not tell so little.
func wait(d time.Duration) time.Duration { return max(d, time.Millisecond) }
