package history

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// done marks the slot whose work is done as of a record.
// It is the newest entry of that slot, or a missed slot that was made up for later.
func (h *reader) done(r store.Record) {
	if r.DoneUntil.IsZero() {
		return
	}
	slot := h.doneSlot(r)
	if e := h.term(); e != nil && r.Kind == store.KindDone && e.Record.Claim == r.Claim && e.Slot.Start.Before(slot.Start) && slot.Start.Before(e.Window.End) {
		e.close(r) // Its run went on while the slot began.
		return
	}
	for i, e := range slices.Backward(h.entries) {
		another := e.Count <= 1 && !slot.Start.IsZero() && !e.Slot.Start.Equal(slot.Start)
		if !e.Slot.End.Equal(slot.End) || another || !e.closable() {
			continue
		}
		if e.Count > 1 {
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
		e := Entry{Slot: slot, Count: 1}
		e.close(r)
		h.entries = append(h.entries, e)
	}
}

// closable reports that an entry is of a slot whose work may be done: it was granted, or missed, perhaps with the record that says
// so already.
func (e *Entry) closable() bool {
	said := e.State == Done && !e.DoneAt.IsZero()
	return e.State != Poison && e.State != Skipped && (e.Record.Seq == 0 || e.Record.Kind == store.KindGrant || said)
}

// close marks an entry as done, as a record says.
func (e *Entry) close(r store.Record) {
	e.State, e.RunsFor, e.RunsSince = Done, slots.Slot{}, time.Time{}
	if r.Kind != store.KindDone {
		return // It repeats what a record said that was not read.
	}
	if e.Record.Seq == 0 {
		e.Record, e.Window = r, slots.Slot{Start: r.WindowStart, End: r.WindowEnd}
	}
	if e.DoneAt.IsZero() { // Its worker says it again where a foreign record has forgotten it.
		e.DoneAt = r.ReadAt
	}
	if e.Cause == store.WorkerDied { // It was taken for dead, and lives.
		e.Outcome, e.OutcomeKnown, e.Cause = store.Outcome{}, false, ""
	}
}

// doneSlot is the newest slot that is done by a record. Records of earlier versions say when it ends.
func (h *reader) doneSlot(r store.Record) slots.Slot {
	if done, _ := store.ParseDone(r.Done); !done.IsZero() {
		return slots.Slot{Start: done.Start, End: done.End}
	}
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
