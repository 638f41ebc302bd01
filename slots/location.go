package slots

import "time"

// Location is the time zone by which a schedule cuts slots: that of a cron spec, or what a method
// Location of another implementation returns, and UTC if there is none. What it says depends on
// the release of the tz database that this program has.
func Location(s Schedule) *time.Location {
	if zoned, ok := s.(interface{ Location() *time.Location }); ok {
		return zoned.Location()
	}
	return time.UTC
}

// Location is the zone of the spec.
func (c *cronSchedule) Location() *time.Location { return c.loc }
