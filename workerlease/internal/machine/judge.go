package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Judge is why the first of some records, newest first, can't be obeyed as far as those below it
// show, if store time is at most latest; nil if it can. terms.Broken names the rule.
func Judge(records []store.Record, latest time.Time) error {
	return judges(latest).defect(records)
}

// PassedOver is why the writer of a reset, the first of some records, could not obey the record
// right below that: it may have been too far ahead then. It is nil if it could.
func PassedOver(records []store.Record, latest time.Time) error {
	f, below := judges(latest), records[1:]
	if len(below) == 0 {
		return nil
	}
	return f.asOf(records[0], below[0]).defect(below)
}

func judges(latest time.Time) facts {
	return operators(0, timeline.Interval{Earliest: latest, Latest: latest})
}
