package inspect

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// findDone finds up to when slots of a job are done, and the slot that is due next.
func (t *typeStatus) findDone(records []store.Record) {
	first := slices.IndexFunc(t.rows, func(e history.Entry) bool { return e.Attempt > 0 })
	schedule, err := slots.Parse(t.schedule)
	if first < 0 || err != nil {
		return
	}
	t.due = t.rows[first].Slot
	poison := func(r store.Record) bool {
		return slices.ContainsFunc(t.rows, func(e history.Entry) bool { return e.State == history.Poison && e.Record.Seq == r.Seq })
	}
	newest := slices.IndexFunc(records, func(r store.Record) bool { return r.CheckEnvelope() == nil && !poison(r) })
	if newest >= 0 {
		r := records[newest]
		done, _ := store.ParseDone(r.Done)
		switch {
		case !done.IsZero():
			t.doneUntil, t.due = done.End, schedule.Next(done.Start)
		case !r.DoneUntil.IsZero():
			t.doneUntil, t.due = r.DoneUntil, schedule.Next(r.DoneUntil.Add(-1))
		}
	}
	t.mayEnd = schedule.Next(t.due.Start).End
}

// passSkipped leaves out of what is due the slots that were over when a run which succeeded had skipped them. Workers that are there
// cover them by what they record of the run; one that claims a slot alone, and has left, may not have.
func (t *typeStatus) passSkipped(now time.Time) {
	schedule, err := slots.Parse(t.schedule)
	for _, e := range t.rows {
		ran := func(r history.Entry) bool { return r.State == history.Done && r.Record.Claim == e.Record.Claim }
		over := e.State == history.Skipped && !now.Before(e.Slot.End) && slices.ContainsFunc(t.rows, ran)
		if err == nil && over && e.Slot.Contains(t.due.Start) {
			t.due = schedule.At(e.Slot.End)
			t.mayEnd = schedule.Next(t.due.Start).End
		}
	}
}

// overdue is for how long another slot of a job should have been begun, as its workers say, or be done while somebody has it, or
// if none says; 0 if none should, or if an operator has paused the worker type. A run that goes on may skip a slot.
func (t typeStatus) overdue(now time.Time) time.Duration {
	paused := slices.ContainsFunc(t.orders, func(o store.Order) bool { return o.Kind == store.OrderPause })
	if t.due.IsZero() || paused {
		return 0
	}
	by, within := t.due.End, time.Duration(0)
	if t.job != nil {
		within = t.job.StartsWithin(t.due.Length())
	}
	switch {
	case t.holder.State == "" && within > 0:
		by = t.due.Start.Add(within)
	case t.holder.State != "" && (t.job == nil || t.job.Overrun != workerlease.Stop.String()):
		by = t.mayEnd
	}
	return max(0, now.Sub(by))
}
