package inspect

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/slots"
)

// zone is the zone of a schedule, and UTC if it has none or can't be read.
func zone(schedule string) *time.Location {
	if s, err := slots.Parse(schedule); err == nil {
		return slots.Location(s)
	}
	return time.UTC
}

// beside is a time as clocks of a zone show it, to stand in brackets behind that in UTC, with its date if that is another;
// empty in UTC. named adds the zone.
func beside(t time.Time, in *time.Location, named bool) string {
	if t.IsZero() || in.String() == "UTC" {
		return ""
	}
	local, layout := t.In(in), "15:04"
	if local.Second() != 0 {
		layout = "15:04:05"
	}
	if local.Day() != t.UTC().Day() {
		layout = "2006-01-02 " + layout
	}
	text := local.Format(layout)
	if named {
		text += " " + in.String()
	}
	return " (" + text + ")"
}

// momentIn is a moment as seen from a time, in the zone of the worker type's schedule, by the newest records.
func momentIn(ctx context.Context, l *charges.Ledger, workerType string, m Moment, now time.Time) (time.Time, error) {
	if !m.daily || m.utc {
		return m.Before(now, time.UTC), nil
	}
	records, _, err := l.Tail(ctx, workerType, statusRecords)
	return m.Before(now, zone(statusOf(workerType, records, now).schedule)), err
}
