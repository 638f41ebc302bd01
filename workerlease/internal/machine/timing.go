package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is for callers that show the engine's timing, or plan with it. None of it
// decides anything.

// LeadOf is how long before a slot's boundary its claims open.
func (c *Config) LeadOf(slot slots.Slot) time.Duration { return c.lead(slot) }

// LeadAfter is the lead of a slot that follows one of a length.
func (c *Config) LeadAfter(length time.Duration) time.Duration { return c.leadAfter(length) }

// StartsWithin is how late the first attempt at a slot may begin; 0: as long as the slot lasts.
func (c *Config) StartsWithin(slot slots.Slot) time.Duration { return c.startWithin(slot) }

// Early is how long before the end of a part of a slot its holder extends it; 0 without
// Failover.
func (c *Config) Early() time.Duration { return c.early() }

// LongestPart bounds the parts of a slot, except the last.
func (c *Config) LongestPart() time.Duration { return c.Failover - c.early() }

// PartsBefore is the number of equal parts that a slot is cut into up to the opening of
// claims for the next one, whole after its start; 1 without Failover.
func (c *Config) PartsBefore(whole time.Duration) int64 { return c.parts(whole) }

// WindowEnd is the end of a window that begins at from, within a slot.
func (c *Config) WindowEnd(slot slots.Slot, from time.Time) time.Time { return c.windowEnd(slot, from) }

// SampleAges are the greatest ages of the newest sample of store time at which a slot
// with a lead is claimed, and a part of a slot is extended.
func (c *Config) SampleAges(lead time.Duration) (claiming, extending time.Duration) {
	return freshToClaim(lead), c.freshToExtend()
}

// StartBy is up to when the first attempt at a slot may begin.
func (c *Config) StartBy(slot slots.Slot) time.Time {
	if by := c.startBy(slot); !by.IsZero() {
		return by
	}
	return slot.End
}

// HeadAge is the age of the newest read of the head at which a part is still extended
// without reading it again.
const HeadAge = lookAge / 2

// MaxDrift is the greatest rate by which a local clock and the store's may differ.
const MaxDrift = timeline.MaxDrift
