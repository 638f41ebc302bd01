package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
)

// maxEarly keeps an extension's claim younger than any claim may get.
const maxEarly = 5 * time.Minute

// early is how long before the end of a window its holder extends it. If the holder dies
// right after extending, a standby takes over when the new window ends. So Failover
// promises the length of a window and early together.
func (c *Config) early() time.Duration { return min(c.Failover/4, maxEarly) }

// MaxFailoverMargin is the largest margin with which a window can be extended in
// time, however long it is.
const MaxFailoverMargin = maxEarly / 2

// MinFailover is the least Failover for a margin. It leaves an extension two margins
// before the last moment of the window: time to be confirmed, or tried again.
func MinFailover(margin time.Duration) time.Duration { return 8 * margin }

// MinWindow is the shortest window that leaves time to work, at an uncertainty of store
// time. Work begins when all of the interval has reached the window's start, and ends a
// margin before any of it reaches the end. Rounding of waits takes the 2 ms.
func MinWindow(uncertainty, margin time.Duration) time.Duration {
	return 2*uncertainty + margin + 2*time.Millisecond
}

// MinUsefulFailover is the least Failover at an uncertainty of store time: the shortest
// window of a take-over is a quarter of it.
func MinUsefulFailover(uncertainty, margin time.Duration) time.Duration {
	return 4 * MinWindow(uncertainty, margin)
}

// windowEnd is the end of a window that begins at from, within a slot. Without Failover
// it is the slot's. With it, the slot is cut into equal windows up to the opening of claims
// for the next slot, and one last window from there to its end: the holder has all of the
// slot before anybody claims the next, so nobody finds a gap after it. A window that
// would be over before it can be extended goes on to the next cut.
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

// parts is the number of equal windows that a slot is cut into, up to the opening of
// claims for the next one, whole after its start.
func (c *Config) parts(whole time.Duration) int64 {
	if c.Failover == 0 {
		return 1
	}
	length := c.Failover - c.early()
	return int64((whole + length - 1) / length)
}

// freshToClaim is how old the newest sample of store time may be when a slot is claimed.
func freshToClaim(lead time.Duration) time.Duration { return max(lead, time.Second) }

// freshToExtend is the same when a window is extended: by then, drift takes an eighth of
// the time that is left.
func (c *Config) freshToExtend() time.Duration {
	return min(max(time.Second, 64*c.early()), c.Rules.Fresh)
}
