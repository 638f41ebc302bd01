package ledger

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// This file is how long workers watch what they can't obey.

// LongestSpan bounds what a slot, and a window of poison, count for. Without it, poison could
// stand for years.
const LongestSpan = 24 * time.Hour

// span counts the windows below the newest as well, because a reset ends all of them: an
// unreadable record may lie on top of a grant that only this worker can't obey.
func span(poison []store.Record) (longest time.Duration) {
	for _, r := range poison {
		if r.CheckEnvelope() == nil {
			longest = max(longest, r.WindowEnd.Sub(r.WindowStart))
		}
	}
	return min(longest, LongestSpan)
}

// Watched is how long a worker with slots of a length watches poison, the first of some records,
// and what is poison right below it, before it supersedes them.
func (v Reader) Watched(records []store.Record, slot time.Duration) time.Duration {
	n := 1
	for n < len(records) && v.Impossible(records[n:]) {
		n++
	}
	return v.Rules.Outlasting(records[:n], min(slot, LongestSpan))
}

// Outlasting is how long it takes until no worker can still act on records: until the longest of
// their windows, or of one's own slots, would be over.
func (r *Rules) Outlasting(records []store.Record, slot time.Duration) time.Duration {
	return max(slot, r.Span(records)) + r.Patience
}

// YoungerThan is the reading of the head for the newest record below poison that can be obeyed. The
// poison was appended later, whatever a sighting says. Zero: it isn't known; then a sighting could
// be of a ledger that was deleted since.
func (v Reader) YoungerThan(below []store.Record) time.Time {
	for i, r := range below {
		if !v.Impossible(below[i:]) {
			return r.ReadAt
		}
	}
	return time.Time{}
}

// Timeless reports that poison, the first of some records, and what is poison right below it, is
// so whatever the time is. Other poison is too far ahead of store time, which a worker may know
// wrongly, and the next one, too: so its sightings count for nothing.
func (v Reader) Timeless(records []store.Record) bool {
	v.Latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range records {
		if !v.Impossible(records[i:]) {
			return i > 0
		}
	}
	return true
}
