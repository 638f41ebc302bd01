package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// maxEarly keeps an extension's claim younger than any claim may get.
const maxEarly = 5 * time.Minute

// early is how long before the end of a window its holder extends it. Whoever dies
// right after that is succeeded when the window it got then has ended: so a window
// and this together are what Failover promises.
func (c *Config) early() time.Duration { return min(c.Failover/4, maxEarly) }

// MaxFailoverMargin is the largest margin with which a window can be extended in
// time, however long it is.
const MaxFailoverMargin = maxEarly / 2

// MinFailover is the least Failover for a margin: the extension of a window is
// known twice a margin before the last moment of the window, or is tried again.
func MinFailover(margin time.Duration) time.Duration { return 8 * margin }

// MinWindow is the shortest window that leaves time to work, at an uncertainty of
// store time: that begins when all of the interval has reached its start, and ends a
// margin before any of it has reached its end. The 2 ms are what waits are rounded by.
func MinWindow(uncertainty, margin time.Duration) time.Duration {
	return 2*uncertainty + margin + 2*time.Millisecond
}

// MinUsefulFailover is the least Failover at an uncertainty of store time: the shortest
// window of a take-over is a quarter of it.
func MinUsefulFailover(uncertainty, margin time.Duration) time.Duration {
	return 4 * MinWindow(uncertainty, margin)
}

// windowEnd is where a window ends that begins at from, within a slot. Without
// Failover, where the slot does. Else the slot is cut into equal windows up to
// where claims for the next slot open, and a last one from there to its end: who
// holds the slot has all of it before anybody claims the next, and so nobody finds
// a gap behind it. A window that would be over before it can be extended goes on
// to the next cut.
func (c *Config) windowEnd(slot slots.Slot, from time.Time) time.Time {
	if c.Failover == 0 {
		return slot.End
	}
	open := slot.End.Add(-c.lead(c.Schedule.Next(slot.Start)))
	whole, early := open.Sub(slot.Start), c.early()
	n := c.parts(whole)
	if n < 1 {
		return slot.End
	}
	width, rest := int64(whole)/n, int64(whole)%n
	cut := func(i int64) time.Time {
		return slot.Start.Add(time.Duration(i*width + i*rest/n)).Truncate(time.Millisecond)
	}
	least := from.Add(early).Truncate(time.Millisecond)
	for i := max(int64(least.Sub(slot.Start))/(width+1), 1); i <= n; i++ {
		if end := cut(i); !end.Before(least) {
			return end
		}
	}
	return slot.End
}

// parts is how many equal windows a slot is cut into, up to where claims for the next one
// open, which is whole after its start.
func (c *Config) parts(whole time.Duration) int64 {
	if c.Failover == 0 {
		return 1
	}
	length := c.Failover - c.early()
	return int64((whole + length - 1) / length)
}

// freshToClaim is how old the newest sample of store time may be when a slot is claimed.
func freshToClaim(lead time.Duration) time.Duration { return max(lead, time.Second) }

// freshToExtend is the same when a window is extended: what is unknown by then takes an
// eighth of the time that is left.
func (c *Config) freshToExtend() time.Duration {
	return min(max(time.Second, 64*c.early()), c.Rules.Fresh)
}
