package estimate

import (
	"time"

	"github.com/slotlease/slotlease/priority"
)

// maxEarly bounds how long before its end a part of a slot is extended: otherwise a
// quarter of FailoverWithin.
const maxEarly = 5 * time.Minute

// early is how long before its end a part of a slot is extended.
func early(failover time.Duration) time.Duration { return min(failover/4, maxEarly) }

// leadOf is how long before a boundary claims open, after a slot of a length.
func leadOf(slot, lead, failover time.Duration) time.Duration {
	lead = priority.Lead(slot, lead)
	if failover > 0 {
		lead = min(lead, failover/2)
	}
	return lead
}
