package history

import (
	"slices"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// done marks the slot whose work is done as of a record: the one that ends at DoneUntil.
// It is the newest entry of that slot, or a missed slot that was made up for later.
func (h *reader) done(r store.Record) {
	if r.DoneUntil.IsZero() {
		return
	}
	for i, e := range slices.Backward(h.entries) {
		if !e.Slot.End.Equal(r.DoneUntil) || e.State == Poison || e.Record.Seq != 0 && e.Record.Kind != store.KindGrant {
			continue
		}
		if e.Count > 1 {
			slot := h.doneSlot(r)
			if !slot.Start.After(e.Slot.Start) {
				return
			}
			// The last of several missed slots gets its own entry.
			h.entries[i].Slot.End = slot.Start
			h.entries[i].Count--
			i++
			h.entries = slices.Insert(h.entries, i, Entry{Slot: slot, Count: 1})
		}
		h.entries[i].close(r)
		return
	}
	if r.Kind == store.KindDone {
		// The grant or the gap that it is about was not read.
		e := Entry{Slot: h.doneSlot(r), Count: 1}
		e.close(r)
		h.entries = append(h.entries, e)
	}
}

// close marks an entry as done, as a record says.
func (e *Entry) close(r store.Record) {
	e.State = Done
	if r.Kind != store.KindDone {
		return // It repeats what a record said that was not read.
	}
	if e.Record.Seq == 0 {
		e.Record, e.Window = r, slots.Slot{Start: r.WindowStart, End: r.WindowEnd}
	}
	e.DoneAt = r.ReadAt
}

// doneSlot is the slot that a record says is done.
func (h *reader) doneSlot(r store.Record) slots.Slot {
	if schedule := h.scheduleOf(r); schedule != nil {
		if slot := schedule.At(r.DoneUntil.Add(-1)); slot.End.Equal(r.DoneUntil) {
			return slot
		}
	}
	if r.SlotEnd.Equal(r.DoneUntil) && r.SlotStart.Before(r.SlotEnd) {
		return slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	}
	return slots.Slot{End: r.DoneUntil}
}
