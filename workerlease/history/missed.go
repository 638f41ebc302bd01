package history

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

const (
	// MaxMissed bounds how many missed slots in a row are counted.
	MaxMissed = 10_000
	// missedEntries is how many missed slots in a row have an entry each.
	missedEntries = 3
)

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
	since := h.newest.WindowEnd
	if h.newest.Seq == 0 {
		return
	}
	schedule := h.scheduleOf(by)
	if schedule == nil {
		return
	}
	var missed []Entry
	n := 0
	for slot := range gap.Slots(schedule, since, until) {
		n++
		switch {
		case n > MaxMissed:
			missed[0].More = true
			h.entries = append(h.entries, missed[0])
			return
		case n <= missedEntries:
			missed = append(missed, Entry{Slot: slot, State: Missed, Count: 1})
		default:
			missed = missed[:1]
			missed[0].Slot.End, missed[0].Count = slot.End, n
		}
	}
	h.entries = append(h.entries, missed...)
}

// block marks the newest entry if the newest record that can be obeyed leaves nothing to
// claim for long. What is done keeps only jobs from their slots: other workers repeat it,
// and lead on.
func (h *reader) block() {
	until := h.below.WindowEnd
	if h.jobs && h.below.DoneUntil.After(until) {
		until = h.below.DoneUntil
	}
	if n := len(h.entries); n > 0 && until.After(machine.BlocksAfter(h.below, h.schedule, h.now)) {
		h.entries[n-1].BlocksUntil, h.entries[n-1].BlockedBy = until, h.below.Seq
	}
}

// current adds the slot that is under way, if nobody has claimed it.
func (h *reader) current() {
	if h.now.Before(h.newest.WindowEnd) {
		return
	}
	schedule := h.scheduleOf(h.newest)
	if schedule == nil {
		return
	}
	slot := schedule.At(h.now)
	if slot.IsZero() || slot.Start.Before(h.newest.WindowEnd) {
		return
	}
	h.entries = append(h.entries, Entry{Slot: slot, State: Free, Count: 1})
}
