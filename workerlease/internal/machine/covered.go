package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// This file decides which slots are done. What is done is a slot, as its worker had it, and
// workers may have other slots: while a schedule changes, or by another release of the tz
// database. So slots are compared by when they start, and each slot that starts later than
// the newest that was done is run.

// isDone reports that a slot starts no later than the newest that was done. Those before it
// were done, or had their time. If the newest was one of the same zone by another release of the
// tz database, local times count: the work of a local time is done once. Where nobody knows
// which slot was the newest, all that have ended by DoneUntil are done.
func isDone(head Carried, slot slots.Slot, by slots.Schedule) bool {
	switch done := head.Done; {
	case head.DoneUntil.IsZero():
		return false
	case done.IsZero():
		return !slot.End.After(head.DoneUntil)
	case elsewhere(done, by):
		return !slot.Start.Add(offset(slot.Start, slots.Location(by))).After(done.Start.Add(done.Offset))
	default:
		return !slot.Start.After(done.Start)
	}
}

// elsewhere reports that a slot is none of a schedule, of the same zone, and that another release
// of the tz database is why, as far as that shows.
func elsewhere(done store.Done, s slots.Schedule) bool {
	if s == nil {
		return false
	}
	zone := slots.Location(s)
	return zoneName(zone) == done.Zone && offset(done.Start, zone) != done.Offset && s.At(done.Start) != slots.Slot{Start: done.Start, End: done.End}
}

// offset is what a zone adds to UTC at a time.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// zoneName is a zone as a Done has it.
func zoneName(zone *time.Location) string {
	if zone == time.UTC {
		return ""
	}
	return zone.String()
}

// doneSlot is a slot of this worker's schedule that is done.
func (c *Config) doneSlot(slot slots.Slot) store.Done {
	if slot.IsZero() {
		return store.Done{}
	}
	zone := slots.Location(c.Schedule)
	return store.Done{Start: slot.Start, End: slot.End, Zone: zoneName(zone), Offset: offset(slot.Start, zone)}
}

// IsDone reports that a slot of this worker's schedule is done, by what a record repeats.
func (c *Config) IsDone(by Carried, slot slots.Slot) bool {
	if t := c.Trigger; !t.IsZero() {
		return by.Seq >= t.Seq && !store.Triggers(by.Orders, t.Order.At)
	}
	return c.Rules.IsDone(by, slot, c.Schedule)
}

// DoneUntil is the end of the newest slot of this worker's schedule that is done, zero if
// none is known to be.
func (c *Config) DoneUntil(by Carried) time.Time {
	if by.Done.IsZero() {
		return by.DoneUntil
	}
	slot := c.Schedule.At(by.Done.Start)
	if next := c.Schedule.Next(slot.Start); c.IsDone(by, next) {
		slot = next // by a release of the tz database that has it earlier
	}
	if !c.IsDone(by, slot) {
		slot.End = slot.Start
	}
	return slot.End
}

// Foreign reports that the newest slot that is done is none of this worker's schedule: that has changed since.
func (c *Config) Foreign(by Carried) bool {
	slot := by.DoneSlot()
	return !slot.IsZero() && c.Schedule.At(slot.Start) != slot
}

// IsDoneIn reports that a slot is done by what a record says, to a reader who has no schedule.
func IsDoneIn(r store.Record, slot slots.Slot) bool {
	if r.Triggered() {
		return !store.Triggers(r.Orders, r.SlotStart)
	}
	return Standard.IsDone(Standard.Carry(r), slot, nil)
}

// DoneSlot is the newest slot that was done, zero if it isn't known.
func (c Carried) DoneSlot() slots.Slot { return slots.Slot{Start: c.Done.Start, End: c.Done.End} }

// DoneBefore is up to when slots that start are done, as far as that is known.
func (c Carried) DoneBefore() time.Time {
	if c.Done.IsZero() {
		return c.DoneUntil
	}
	return c.Done.Start
}

// known is the newest done slot as a record has it. Earlier versions write only when it ends, which
// shows the slot if the record is of that, and no grant of another that ends then. What contradicts
// DoneUntil is not believed.
func known(r store.Record) store.Done {
	done, err := store.ParseDone(r.Done)
	switch {
	case r.DoneUntil.IsZero() || err != nil || done.End.After(r.DoneUntil):
		return store.Done{}
	case done.IsZero() && r.Kind != store.KindGrant && r.SlotEnd.Equal(r.DoneUntil) && r.SlotStart.Before(r.SlotEnd):
		return store.Done{Start: r.SlotStart, End: r.SlotEnd}
	}
	return done
}
