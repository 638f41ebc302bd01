package main

import (
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// closeSlot marks the slot whose work is done as of a record: the one that ends where
// that says. It is the newest row of it, or one that was missed, and made up for
// later.
func closeSlot(rows []entry, r store.Record) []entry {
	if r.DoneUntil.IsZero() {
		return rows
	}
	for i := len(rows) - 1; i >= 0; i-- {
		e := &rows[i]
		if !e.Slot.End.Equal(r.DoneUntil) || e.State == poison || e.Record.Seq != 0 && e.Record.Kind != store.KindGrant {
			continue
		}
		if e.Slots > 0 {
			slot := doneSlot(r)
			if !slot.Start.After(e.Slot.Start) {
				return rows
			}
			e.shorten(slot.Start)
			i++
			rows = slices.Insert(rows, i, entry{Slot: slot})
		}
		rows[i].close(r)
		return rows
	}
	if r.Kind == store.KindDone {
		// The grant, or the gap, that it is about was not read.
		e := entry{Slot: doneSlot(r)}
		e.close(r)
		return append(rows, e)
	}
	return rows
}

// close makes a row one whose work is done, as a record tells.
func (e *entry) close(r store.Record) {
	e.State, e.Note = done, ""
	if e.Record.Seq != 0 {
		e.Note = e.from()
	}
	if r.Kind != store.KindDone {
		return // It repeats what one said that was not read.
	}
	if e.Record.Seq == 0 {
		e.Record = r
	}
	if !r.ReadAt.IsZero() && !e.Slot.Start.IsZero() {
		e.Note = strings.TrimSpace(e.Note + " at " + relative(r.ReadAt.Sub(e.Slot.Start)))
	}
}

// shorten takes the last slot off a row of several that were missed.
func (e *entry) shorten(end time.Time) {
	e.Slot.End = end
	if e.Slots--; e.Slots == 1 {
		e.Slots = 0
	}
	before, _, several := strings.Cut(e.Note, "; ")
	e.Note = ""
	if several {
		e.Note = before
	}
	e.count()
}

// doneSlot is the slot that a record says is done.
func doneSlot(r store.Record) slots.Slot {
	if schedule, err := slots.Parse(r.Schedule); err == nil {
		if slot := schedule.At(r.DoneUntil.Add(-1)); slot.End.Equal(r.DoneUntil) {
			return slot
		}
	}
	if r.SlotEnd.Equal(r.DoneUntil) && r.SlotStart.Before(r.SlotEnd) {
		return slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	}
	return slots.Slot{End: r.DoneUntil}
}
