// Package gap finds the slots between two leases that nobody claimed. It is pure.
package gap

import (
	"iter"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// Slots yields the slots of a schedule that lie between the end of a window and a time, as a whole,
// in order.
func Slots(s slots.Schedule, since, until time.Time) iter.Seq[slots.Slot] {
	return func(yield func(slots.Slot) bool) {
		if !until.After(since) {
			return
		}
		slot := s.At(since)
		if slot.Start.Before(since) {
			slot = s.Next(since)
		}
		for !slot.IsZero() && !slot.End.After(until) {
			next := s.Next(slot.Start)
			if !yield(slot) || !next.Start.After(slot.Start) {
				return
			}
			slot = next
		}
	}
}
