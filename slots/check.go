package slots

import (
	"fmt"
	"time"
)

// Check reports how a schedule breaks the promises of [Schedule], nil if it keeps them near
// a time: at 27 instants from two weeks before it to a year after it. Slots must be whole
// milliseconds, and last from [MinInterval] to [MaxInterval]. The error names the call whose
// result is wrong. Check is for foreign schedules: those of this package keep the promises.
func Check(s Schedule, near time.Time) error {
	for i := range 27 {
		// The time of day is another one each time.
		if err := checkAt(s, near.Add(time.Duration(i-1)*(14*24*time.Hour+53*time.Minute)).UTC()); err != nil {
			return err
		}
	}
	return nil
}

// checkAt looks at the slot that contains a time, and at the next one.
func checkAt(s Schedule, t time.Time) error {
	slot, next := s.At(t), s.Next(t)
	if !slot.Contains(t) {
		return fmt.Errorf("At(%s) = %v, which doesn't contain that time", instant(t), slot)
	}
	if !next.Start.Equal(slot.End) {
		return fmt.Errorf("Next(%s) = %v, and the slot before it, %v, doesn't end there", instant(t), next, slot)
	}
	for _, each := range []Slot{slot, next} {
		if length := each.Length(); length < MinInterval || length > MaxInterval {
			return fmt.Errorf("slot %v lasts %v, want %v to 366 days", each, length, MinInterval)
		}
		if each != each.millis() {
			return fmt.Errorf("slot %v is not in UTC and whole milliseconds", each)
		}
	}
	last := slot.End.Add(-1)
	for _, at := range []time.Time{slot.Start, last} {
		if got := s.At(at); got != slot {
			return fmt.Errorf("At(%s) = %v, and At(%s) = %v, want the same", instant(at), got, instant(t), slot)
		}
		if got := s.Next(at); got != next {
			return fmt.Errorf("Next(%s) = %v, and Next(%s) = %v, want the same", instant(at), got, instant(t), next)
		}
	}
	if got := s.At(slot.End); got != next {
		return fmt.Errorf("At(%s) = %v, and Next(%s) = %v, want the same", instant(slot.End), got, instant(t), next)
	}
	return nil
}

// millis is the slot in UTC and whole milliseconds, without a monotonic reading.
func (s Slot) millis() Slot {
	return Slot{Start: time.UnixMilli(s.Start.UnixMilli()).UTC(), End: time.UnixMilli(s.End.UnixMilli()).UTC()}
}

func instant(t time.Time) string { return t.Format(time.RFC3339Nano) }
