package history

import (
	"cmp"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

const (
	// MaxMissed bounds how many slots in a row that nobody claimed are counted.
	MaxMissed = 10_000
	// missedEntries and skippedEntries are how many missed, and skipped, slots in a row have an entry each.
	missedEntries, skippedEntries = 3, 20
)

// OtherSlot is the slot in which that of a grant starts by the schedule that the grant names, as this program
// has it, and whether it is another one: then its writer has another release of the tz database.
func OtherSlot(r store.Record) (ours slots.Slot, differs bool) {
	schedule, err := slots.Parse(r.Schedule)
	if err != nil {
		return slots.Slot{}, false
	}
	return machine.OtherSlot(schedule, r)
}

// scheduleOf is the schedule by which slots next to a record are found, nil if it can't
// be read.
func (h *reader) scheduleOf(r store.Record) slots.Schedule {
	if h.schedule != nil {
		return h.schedule
	}
	if r.Schedule != h.parsed.text {
		h.parsed.text = r.Schedule
		h.parsed.schedule, _ = slots.Parse(r.Schedule) // nil for one that isn't known
	}
	return h.parsed.schedule
}

// gap adds the slots between the newest grant and a time that nobody claimed, by the
// schedule of a record.
func (h *reader) gap(by store.Record, until time.Time) {
	schedule := h.scheduleOf(by)
	if h.gaps.Newest.Seq == 0 || schedule == nil {
		return
	}
	alike, n := 0, 0 // of the last ones in a row, and all
	for slot := range h.gaps.Unclaimed(schedule, until) {
		last := len(h.entries) - 1
		if n++; n > MaxMissed {
			h.entries[last].More = true
			return
		}
		e, each := unclaimed(slot), missedEntries
		if e.State == Skipped {
			each = skippedEntries
		}
		if alike > 0 && !e.sameGap(h.entries[last]) {
			alike = 0
		}
		switch alike++; {
		case alike <= each:
			h.entries = append(h.entries, e)
		case alike == each+1:
			last -= each - 1
			h.entries = h.entries[:last+1]
			fallthrough
		default:
			h.entries[last].Slot.End, h.entries[last].Count = slot.End, alike
		}
	}
}

// unclaimed is the entry of a slot that nobody claimed.
func unclaimed(slot gap.Slot) Entry {
	e := Entry{Slot: slot.Slot, State: Missed, Count: 1, Order: slot.Pause}
	if e.Order == nil {
		e.Order = slot.Drain
	}
	run := cmp.Or(slot.Run, slot.Died)
	if run != nil {
		e.Order, e.RunsFor, e.RunsSince = nil, slots.Slot{Start: run.Grant.SlotStart, End: run.Grant.SlotEnd}, run.Since()
	}
	if slot.Run != nil {
		e.State, e.Record = Skipped, run.Grant
	}
	if e.Order != nil {
		e.Order = new(*e.Order) // It ends earlier, as the reader may yet learn.
	}
	return e
}

// sameGap reports that two slots in a row were not claimed for the same reason.
func (e Entry) sameGap(before Entry) bool {
	sameOrder := (e.Order == nil) == (before.Order == nil) && (e.Order == nil || *e.Order == *before.Order)
	return e.State == before.State && e.RunsFor == before.RunsFor && sameOrder && e.Record.Claim == before.Record.Claim
}

// block marks the newest entry if the newest record that can be obeyed leaves nothing to
// claim for long. What is done keeps only jobs from their slots: other workers repeat it,
// and lead on.
func (h *reader) block() {
	until := h.below.WindowEnd
	if done := h.below.DoneBefore(); h.jobs && done.After(until) {
		until = done
	}
	if n := len(h.entries); n > 0 && until.After(machine.BlocksAfter(h.below, h.schedule, h.now)) {
		h.entries[n-1].BlocksUntil, h.entries[n-1].BlockedBy = until, h.below.Seq
	}
}

// current adds the slot that is under way, if nobody has claimed it.
func (h *reader) current() {
	newest := h.gaps.Newest
	schedule := h.scheduleOf(newest)
	if schedule == nil {
		return
	}
	slot := schedule.At(h.now)
	if slot.IsZero() || slot.Start.Before(h.gaps.Since) {
		return
	}
	e := unclaimed(h.gaps.Judge(slot, h.now))
	switch {
	case e.State == Skipped:
	case !e.RunsFor.Start.IsZero():
		e.State = Free // It may yet be begun.
	case !gap.Late(newest) && (h.now.Before(newest.WindowEnd) || slot.Start.Before(newest.WindowEnd)):
		return
	default:
		e = Entry{Slot: slot, State: Free, Count: 1}
	}
	h.entries = append(h.entries, e)
}

// MayBegin reports that the slot of a skipped entry, one of those that were read, may yet be begun at a time: it lasts, no success
// of the run that went on into it covers it, and its job may begin so
// late. If the times of the job aren't known, job is nil: then that run has ended.
func (e Entry) MayBegin(read []Entry, job *store.JobTimes, at time.Time) bool {
	if e.State != Skipped || e.Count > 1 || !e.Slot.Contains(at) {
		return false
	}
	ended := true
	for _, r := range read {
		if r.State != Skipped && r.Slot == e.RunsFor && r.Record.Claim == e.Record.Claim {
			if r.State == Done && !r.Record.Triggered() {
				return false
			}
			ended = !r.Holds(at)
		}
	}
	if job == nil {
		return ended
	}
	return at.Before(e.Slot.Start.Add(job.StartsWithin(e.Slot.Length())))
}
