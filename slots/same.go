package slots

import "time"

// compared is how many slots Same looks at.
const compared = 500

// Same reports that two schedules have the same slots from the one around a time on, as far as
// the next 500 show it. Their texts may differ, as those of * * * * * and */1 * * * * do.
func Same(a, b Schedule, at time.Time) bool {
	for range compared {
		slot := a.At(at)
		if slot.IsZero() || slot != b.At(at) {
			return false
		}
		at = slot.End
	}
	return true
}
